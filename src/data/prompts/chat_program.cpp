#include "data/prompts/chat_program.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/process/build_info.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

// What the template makes of a conversation.
struct ChatProgram::Made {
  MarkedText text;
  std::string refusal;
  bool parts = false;  // it wants the content of a message as a list of parts
};

namespace {

OrderedJson request_of(const OrderedJson& own, const std::vector<Turn>& turns, bool parts) {
  OrderedJson request = own, messages = OrderedJson::array();
  for (const Turn& turn : turns) {
    OrderedJson content = turn.content;
    if (parts) content = OrderedJson::array({{{"type", "text"}, {"text", turn.content}}});
    messages.push_back({{"role", turn.role}, {"content", content}});
  }
  request["messages"] = std::move(messages);
  request["add_generation_prompt"] = true;
  request.emplace("tools", nullptr);
  request["documents"] = nullptr;
  return request;
}

// But for blanks, which a template may trim.
bool holds(std::string text, std::string question) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  std::erase_if(text, is_blank);
  std::erase_if(question, is_blank);
  return text.find(question) != std::string::npos;
}

// The text of a special token within the turns of a conversation: is it data in the prompt, too?
struct Doubt {
  size_t chat;
  std::string token, marker;  // the marker is in neither the turns nor the prompt
};

size_t first_character(const std::string& token) { return char_at(token, 0).length; }

// The turns with the marker after the first character of each such text.
std::vector<Turn> marked_turns(std::vector<Turn> turns, const Doubt& doubt, std::string_view data,
                               std::span<const std::string_view> specials) {
  for (size_t i = specials.size(); i-- > 0;) {
    if (specials[i] != doubt.token) continue;
    size_t at = static_cast<size_t>(specials[i].data() - data.data());
    auto turn = turns.begin();
    for (; at >= turn->content.size(); ++turn) at -= turn->content.size();
    turn->content.insert(at + first_character(doubt.token), doubt.marker);
  }
  return turns;
}

// Where the markers came out, the text is data, if the prompt is otherwise what it was. Else the template looks at that
// text itself.
void take_marks(const Doubt& doubt, std::string_view rendered, MarkedText& made) {
  std::string plain;
  std::vector<size_t> places;
  for (size_t at; (at = rendered.find(doubt.marker)) != std::string_view::npos;) {
    plain += rendered.substr(0, at);
    places.push_back(plain.size() - std::min(plain.size(), first_character(doubt.token)));
    rendered.remove_prefix(at + doubt.marker.size());
  }
  plain += rendered;
  if (plain != made.text) return;
  for (const size_t at : places) {
    if (made.text.compare(at, doubt.token.size(), doubt.token) == 0)
      std::fill_n(made.origin.begin() + static_cast<std::ptrdiff_t>(at), doubt.token.size(), MarkedText::kData);
  }
}

}  // namespace

std::shared_ptr<const ChatProgram> ChatProgram::load(const std::string& text, const std::string& where) {
  using Loaded = std::map<std::pair<std::string, std::string>, std::shared_ptr<const ChatProgram>>;
  static std::mutex mutex;
  static Loaded& loaded = *new Loaded;  // their processes end with this one, which waits for none of them
  const std::scoped_lock lock(mutex);
  std::shared_ptr<const ChatProgram>& program = loaded[{text, where}];
  if (!program) program.reset(new ChatProgram(text, where));
  return program;
}

ChatProgram::ChatProgram(const std::string& text, const std::string& where) : text_(text), where_(where) {
  if (!valid_utf8(text)) throw Error(ErrorKind::utf8, str(where, ": the chat template is not UTF-8"));
  made_by_ = start();
  if (text.find("strftime_now") != std::string::npos) {
    warn(str(where,
             ": the chat template may write today's date into prompts: they differ from day to day, and so will a ",
             "resumed run"));
  }
}

std::string ChatProgram::start() const {
  const std::string name = str("chat template ", where_);
  child_ = std::make_unique<LineChild>(
      python_words("chat_template", {torch_packages()}),
      LineChildOptions{.name = name,
                       .kind = ErrorKind::python,
                       .exit_code = kBadInput,
                       .consequence = "; a template may take 10 s of CPU time and 1 GiB of memory for a prompt",
                       .longest = size_t{32} << 20});
  const JsonObject reply = JsonObject::parse(ask(json_text(text_) + "\n", 1), where_);
  if (reply.has("missing")) {
    throw Error(ErrorKind::python, str(name, ": needs jinja2 3.1.6 or later (", printable(reply.text("missing"), 400),
                                       "); pip install jinja2 there, or let UCAS_PYTHON name a Python that has it"));
  }
  if (reply.has("error")) throw Error(ErrorKind::config, refusal_of(reply));
  return reply.text("made_by");
}

std::string ChatProgram::ask(const std::string& lines, size_t count) const {
  try {
    return child_->ask(lines, count);
  } catch (const Error&) {
    child_.reset();
    throw;
  }
}

std::string ChatProgram::refusal_of(const JsonObject& reply) const {
  const std::string line = reply.has("line") ? str(":", reply.whole("line")) : "";
  return str(where_, line, ": ", printable(reply.text("error"), 400));
}

std::vector<ChatProgram::Made> ChatProgram::made_of(std::span<const OrderedJson> requests) const {
  std::string lines;
  for (const OrderedJson& request : requests) lines += json_text(request) + "\n";
  const std::scoped_lock lock(mutex_);
  if (!child_) start();
  const std::string replies = ask(lines, requests.size());
  std::vector<Made> out;
  for (size_t at = 0, end; (end = replies.find('\n', at)) != std::string::npos; at = end + 1) {
    const JsonObject reply = JsonObject::parse(std::string_view(replies).substr(at, end - at), where_);
    Made& made = out.emplace_back();
    if (reply.has("error")) {
      made.refusal = refusal_of(reply);
    } else {
      made.text = MarkedText(reply.text("text"), MarkedText::kTemplate);
    }
  }
  return out;
}

// Few conversations hold the text of a special token: those are rendered once more for each.
void ChatProgram::mark_data(std::span<const Chat> chats, const OrderedJson& own, const Tokenizer& tokenizer,
                            std::vector<Made>& all) const {
  std::vector<Doubt> doubts;
  std::vector<OrderedJson> requests;
  for (size_t i = 0; i < chats.size(); ++i) {
    std::string data, marker;
    for (const Turn& turn : chats[i].turns) data += turn.content;
    const std::vector<std::string_view> specials = tokenizer.specials_in(data);
    do {
      append_utf8(marker, 0xFDD0);  // no character, and none that a template would take for one
    } while (data.find(marker) != std::string::npos || all[i].text.text.find(marker) != std::string::npos);
    for (const std::string_view token : std::set<std::string_view>(specials.begin(), specials.end())) {
      doubts.push_back({i, std::string(token), marker});
      requests.push_back(request_of(own, marked_turns(chats[i].turns, doubts.back(), data, specials), all[i].parts));
    }
  }
  if (doubts.empty()) return;
  const std::vector<Made> again = made_of(requests);
  for (size_t i = 0; i < doubts.size(); ++i) take_marks(doubts[i], again[i].text.text, all[doubts[i].chat].text);
}

std::vector<MarkedText> ChatProgram::render(std::span<const Chat> chats, const OrderedJson& own,
                                            const Tokenizer* tokenizer) const {
  std::vector<OrderedJson> requests;
  for (const Chat& chat : chats) requests.push_back(request_of(own, chat.turns, false));
  std::vector<Made> all = made_of(requests);
  for (size_t i = 0; i < chats.size(); ++i) {
    const std::string& question = chats[i].turns.back().content;
    if (all[i].refusal.empty() && holds(all[i].text.text, question)) continue;
    const OrderedJson in_parts = request_of(own, chats[i].turns, true);
    Made made = made_of({&in_parts, 1}).front();
    if (!made.refusal.empty() || !holds(made.text.text, question)) {
      const std::string missing = str(where_, ": the question is not in the prompt that it makes");
      throw Error(ErrorKind::config, str(all[i].refusal.empty() ? missing : all[i].refusal, " (problem ",
                                         printable(chats[i].problem), ")"));
    }
    made.parts = true;
    all[i] = std::move(made);
  }
  if (tokenizer != nullptr) mark_data(chats, own, *tokenizer, all);
  std::vector<MarkedText> out;
  for (Made& made : all) out.push_back(std::move(made.text));
  return out;
}

}  // namespace ucas
