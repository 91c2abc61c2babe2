#include "data/prompts/templates.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "data/prompts/chat_program.h"
#include "data/rows/jsonl.h"
#include "text/stop_texts.h"
#include "text/tokenizer/tokenizer_file.h"

namespace ucas {

namespace {

constexpr std::string_view kProblem = "{problem}", kSystem = "{system}", kChoices = "{choices}",
                           kExamples = "{examples}", kAnswer = "{answer}";

size_t occurrences(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// The part with the question.
const std::string& question_text(const Template& prompt_template) {
  return prompt_template.chat ? prompt_template.user : prompt_template.text;
}

void check(const Template& prompt_template, const std::string& where) {
  auto refuse = [&](const std::string& what) { throw Error(ErrorKind::config, str(where, ": ", what)); };
  const char* key = prompt_template.chat ? "user" : "text";
  const std::string& text = question_text(prompt_template);
  if (occurrences(text, kProblem) != 1) refuse(str(key, ": expected {problem} exactly once"));
  if (occurrences(text, kChoices) > 1) refuse(str(key, ": {choices} is there more than once"));
  if (!prompt_template.chat && occurrences(text, kSystem) > 1) refuse("text: {system} is there more than once");
  if (!prompt_template.chat && (prompt_template.user != kProblem || !prompt_template.set.empty()))
    refuse("user, set: are of templates with chat = true");
  if (prompt_template.chat && !prompt_template.special.empty())
    refuse("special: the special tokens of a chat template are the tokenizer's");
  const bool few = !prompt_template.few_shot.empty();
  if (!few && prompt_template.shots != 0) refuse("shots: without few_shot, the file of the examples");
  if (!prompt_template.chat && occurrences(prompt_template.text, kExamples) != (few ? 1 : 0)) {
    refuse(few ? "text: expected {examples} exactly once, for few_shot" : "text: {examples} without few_shot");
  }
  if (few &&
      (occurrences(prompt_template.example, kProblem) != 1 || occurrences(prompt_template.example, kAnswer) != 1)) {
    refuse("example: expected {problem} and {answer} exactly once each");
  }
  for (const auto& list : {prompt_template.special, prompt_template.stop}) {
    for (const std::string& token : list) {
      if (token.empty()) refuse("special, stop: an empty token");
    }
  }
  for (const std::string& token : prompt_template.special) {
    if (occurrences(prompt_template.text, token) == 0)
      refuse(str("special: \"", printable(token), "\" does not occur in text"));
  }
}

const std::string& system_of(const Template& prompt_template, const Problem& problem) {
  if (problem.system.empty()) return prompt_template.system;
  if (!takes_system(prompt_template)) {
    throw Error(ErrorKind::config,
                str("template ", prompt_template.name, " has no {system}, but problem ", printable(problem.id),
                    " brings a system message; use a template with {system}, or chat"));
  }
  return problem.system;
}

int32_t token_of(const Template& prompt_template, const std::string& text, const Tokenizer& tokenizer) {
  if (auto id = tokenizer.id_of(text)) return *id;
  throw Error(ErrorKind::tokenizer,
              str("template ", prompt_template.name, ": \"", printable(text), "\" is not a token of ",
                  tokenizer.directory(), "; choose another template (plain has no special tokens)"));
}

// The template's text cut at its special tokens: (run, special after it), the last with an empty special.
struct Piece {
  std::string run, special;
};
std::vector<Piece> pieces_of(const Template& prompt_template) {
  std::vector<Piece> pieces(1);
  for (size_t at = 0; at < prompt_template.text.size();) {
    const std::string* found = nullptr;
    for (const std::string& token : prompt_template.special) {
      bool here = prompt_template.text.compare(at, token.size(), token) == 0;
      if (here && (found == nullptr || token.size() > found->size())) found = &token;
    }
    if (found == nullptr) {
      pieces.back().run.push_back(prompt_template.text[at++]);
    } else {
      pieces.back().special = *found;
      at += found->size();
      pieces.emplace_back();
    }
  }
  return pieces;
}

// The values of the placeholders.
struct Filling {
  std::string system, question, choices, examples;
};

using Places = std::vector<std::pair<std::string_view, std::string_view>>;

// Fills the placeholders in one pass: a question that contains "{system}" keeps it.
std::string fill_in(std::string_view run, const Places& places) {
  std::string out;
  while (!run.empty()) {
    size_t brace = std::min(run.find('{'), run.size());
    out.append(run.substr(0, brace));
    run.remove_prefix(brace);
    const auto place = std::ranges::find_if(places, [&](const auto& p) { return run.starts_with(p.first); });
    if (place != places.end()) {
      out += place->second;
      run.remove_prefix(place->first.size());
    } else if (!run.empty()) {
      out.push_back('{');
      run.remove_prefix(1);
    }
  }
  return out;
}

void warn_of_replaced_system(const Template& prompt_template, const std::vector<Problem>& problems) {
  if (prompt_template.system.empty()) return;
  const auto replaces = [&](const Problem& p) { return !p.system.empty() && p.system != prompt_template.system; };
  const auto first = std::ranges::find_if(problems, replaces);
  if (first == problems.end()) return;
  warn(str("template ", prompt_template.name, ": its instruction \"", printable(prompt_template.system, 100),
           "\" is not given with ", grouped(std::ranges::count_if(problems, replaces)), " of ",
           grouped(std::ssize(problems)), " problems, whose own system message takes its place (", printable(first->id),
           ": \"", printable(first->system, 100), "\")"));
}

Filling filling_of(const Template& prompt_template, const Problem& problem) {
  Filling out{system_of(prompt_template, problem), problem.text, "", ""};
  if (!problem.earlier.empty() && !prompt_template.chat) {
    throw Error(ErrorKind::config, str("template ", prompt_template.name, " has a place for one question, but problem ",
                                       printable(problem.id), " is a conversation of ", problem.earlier.size() + 1,
                                       " turns; use --template chat, the checkpoint's own"));
  }
  for (size_t i = 0; i < problem.choices.size(); ++i) {
    out.choices += str(i == 0 ? "" : "\n", static_cast<char>('A' + i), ". ", problem.choices[i]);
  }
  const bool has_place = question_text(prompt_template).find(kChoices) != std::string::npos;
  if (has_place && problem.choices.empty()) {
    throw Error(ErrorKind::config, str("template ", prompt_template.name, " has {choices}, but problem ",
                                       printable(problem.id), " has none; use a template without it"));
  }
  if (!has_place && !problem.choices.empty()) out.question += "\n" + out.choices;
  if (prompt_template.chat) return out;
  for (const Template::Example& example : examples_for(prompt_template, problem)) {
    out.examples += fill_in(prompt_template.example, {{kProblem, example.question}, {kAnswer, example.answer}});
  }
  return out;
}

std::string fill_in(std::string_view run, const Template& prompt_template, const Filling& filling) {
  Places places = {{kProblem, filling.question}, {kSystem, filling.system}, {kChoices, filling.choices}};
  if (!prompt_template.few_shot.empty()) places.emplace_back(kExamples, filling.examples);
  return fill_in(run, places);
}

// The user's message of a chat about a question.
std::string user_message(const Template& prompt_template, const std::string& question, const std::string& choices) {
  return fill_in(prompt_template.user, {{kProblem, question}, {kChoices, choices}});
}

// `set` of a template file: texts of the form NAME = JSON.
OrderedJson settings_of(const Template& prompt_template, const std::string& where) {
  OrderedJson out = OrderedJson::object();
  for (const std::string& setting : prompt_template.set) {
    const size_t sign = setting.find('=');
    const std::string name(trim(setting.substr(0, sign)));
    if (sign == std::string::npos || name.empty()) {
      throw Error(ErrorKind::config, str(where, ": set: expected \"NAME = VALUE\", got \"", printable(setting), "\""));
    }
    try {
      parse_json(trim(setting.substr(sign + 1)), where);
      out[name] = parse_ordered_json(trim(setting.substr(sign + 1)));
    } catch (const Error&) {
      throw Error(ErrorKind::config,
                  str(where, ": set: \"", printable(setting), "\": expected JSON after the sign, such as true, ",
                      "3 or \"a text\" in double quotes"));
    }
  }
  return out;
}

Chat chat_of(const Template& prompt_template, const Problem& problem, const std::string& question) {
  Chat chat{problem.earlier, problem.id};
  const std::string& system = problem.system.empty() ? prompt_template.system : problem.system;
  if (!system.empty()) chat.turns.insert(chat.turns.begin(), {"system", system});
  chat.turns.push_back({"user", question});
  return chat;
}

// The conversation about a problem, with worked examples as earlier turns.
Chat chat_about(const Template& prompt_template, const Problem& problem) {
  const Filling filling = filling_of(prompt_template, problem);
  Problem asked = problem;
  asked.earlier.clear();
  for (const Template::Example& example : examples_for(prompt_template, problem)) {
    asked.earlier.push_back({"user", user_message(prompt_template, example.question, "")});
    asked.earlier.push_back({"assistant", example.answer});
  }
  asked.earlier.insert(asked.earlier.end(), problem.earlier.begin(), problem.earlier.end());
  return chat_of(prompt_template, asked, user_message(prompt_template, filling.question, filling.choices));
}

std::vector<MarkedText> render_chats(const Template& prompt_template, std::span<const Chat> chats,
                                     const Tokenizer* tokenizer) {
  UCAS_CHECK(prompt_template.program != nullptr, "a chat template that was not loaded");
  OrderedJson own = settings_of(prompt_template, prompt_template.name);
  for (const auto& [name, text] : prompt_template.tokens) own[name] = text;
  return prompt_template.program->render(chats, own, tokenizer);
}

std::vector<MarkedText> render_chats(const Template& prompt_template, std::span<const Problem> problems,
                                     const Tokenizer* tokenizer) {
  std::vector<Chat> chats;
  for (const Problem& problem : problems) chats.push_back(chat_about(prompt_template, problem));
  return render_chats(prompt_template, chats, tokenizer);
}

constexpr int64_t kMostShots = 64;

Template::Example read_example_row(const JsonRow& row) {
  const std::string question = first_key(row, {"problem", "question", "prompt"});
  const std::string answer = first_key(row, {"response", "solution", "answer", "ground_truth"});
  if (question.empty() || answer.empty()) {
    throw Error(ErrorKind::data_line,
                str(row.where, ": an example needs a question (\"problem\", \"question\" or \"prompt\") and ",
                    "what answers it (\"response\", \"solution\" or \"answer\")"));
  }
  return {text_field(row, question), answer_field(row, row.value.at(answer), answer, false).front()};
}

}  // namespace

bool takes_system(const Template& prompt_template) {
  return prompt_template.chat || prompt_template.text.find(kSystem) != std::string::npos;
}

namespace {

Template load_form(const std::string& name_or_path, const std::string& checkpoint) {
  if (name_or_path.ends_with(".jinja") || name_or_path.ends_with(".jinja2") || name_or_path.ends_with(".j2")) {
    Template prompt_template;
    prompt_template.name = name_or_path;
    prompt_template.text = read_file(name_or_path);
    prompt_template.chat = true;
    if (prompt_template.text.empty())
      throw Error(ErrorKind::empty, str(printable(name_or_path, 400), ": the file is empty"));
    prepare_chat(prompt_template, checkpoint, printable(name_or_path, 400));
    return prompt_template;
  }
  auto text = embedded(str("templates/", name_or_path, ".toml"));
  bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
  if (!text && !is_path) {
    const std::vector<std::string> names = embedded_stems("templates/");
    throw Error(ErrorKind::config,
                str("template ", printable(name_or_path), ": unknown", did_you_mean(name_or_path, names),
                    "; there are ", join(names, ", "), ", or give the path of a .toml or .jinja file"));
  }
  std::string where = text ? str("template ", name_or_path) : name_or_path;
  Template prompt_template;
  ucas::apply(prompt_template, text ? parse_toml(std::string(*text), where) : read_toml(name_or_path));
  if (prompt_template.name.empty()) prompt_template.name = name_or_path;
  check(prompt_template, where);
  if (prompt_template.chat) prepare_chat(prompt_template, checkpoint, where);
  if (!prompt_template.few_shot.empty()) {
    const size_t slash = text ? std::string::npos : name_or_path.rfind('/');
    read_examples(prompt_template, where, slash == std::string::npos ? "" : name_or_path.substr(0, slash));
  }
  return prompt_template;
}

}  // namespace

Template load_template(const std::string& name_or_path, const std::string& checkpoint, const FewShot& more) {
  Template prompt_template = load_form(name_or_path, checkpoint);
  if (more.few_shot.empty()) {
    if (more.shots > 0)
      throw Error(ErrorKind::config, str("shots = ", more.shots, " needs few_shot, the file of the examples"));
    return prompt_template;
  }
  // A template without a place for them has it right before the question.
  if (prompt_template.few_shot.empty() && !prompt_template.chat)
    prompt_template.text.insert(prompt_template.text.find(kProblem), kExamples);
  prompt_template.few_shot = more.few_shot;
  prompt_template.shots = more.shots;
  read_examples(prompt_template, str("few_shot = ", printable(more.few_shot, 400)), "");
  return prompt_template;
}

std::string render(const Template& prompt_template, const Problem& problem) {
  if (prompt_template.chat)
    return render_chats(prompt_template, std::span<const Problem>(&problem, 1), nullptr)[0].text;
  return fill_in(prompt_template.text, prompt_template, filling_of(prompt_template, problem));
}

std::vector<int32_t> encode_prompt(const Template& prompt_template, const Problem& problem,
                                   const Tokenizer& tokenizer) {
  if (prompt_template.chat)
    return tokenizer.encode(render_chats(prompt_template, std::span<const Problem>(&problem, 1), &tokenizer)[0]);
  const Filling filling = filling_of(prompt_template, problem);
  std::vector<int32_t> ids;
  for (const Piece& piece : pieces_of(prompt_template)) {
    const auto place = ids.empty() ? Tokenizer::Place::beginning : Tokenizer::Place::later;
    std::vector<int32_t> run =
        tokenizer.encode(fill_in(piece.run, prompt_template, filling), Tokenizer::Special::as_text, place);
    ids.insert(ids.end(), run.begin(), run.end());
    if (!piece.special.empty()) ids.push_back(token_of(prompt_template, piece.special, tokenizer));
  }
  if (!ids.empty()) tokenizer.begin_prompt(ids);
  return ids;
}

Stops stops_of(const Template& prompt_template, const std::vector<std::string>& more, const Tokenizer& tokenizer) {
  std::vector<std::string> stops = prompt_template.stop;
  for (const std::string& stop : stops) {
    if (stop.starts_with("<|")) token_of(prompt_template, stop, tokenizer);
  }
  stops.insert(stops.end(), more.begin(), more.end());
  const auto special = [&](int32_t id) { return tokenizer.decode({&id, 1}, true).empty(); };
  Stops out;
  for (const std::string& stop : stops) {
    const auto id = tokenizer.id_of(stop);
    if (id && (special(*id) || tokenizer.token_text(*id) != stop)) {
      out.ids.push_back(*id);
      continue;
    }
    if (std::ranges::any_of(tokenizer.encode(stop), special)) {
      throw Error(ErrorKind::tokenizer,
                  str("stop \"", printable(stop), "\" holds a special token of ", tokenizer.directory(),
                      " among other text; name that token alone, or a text without it"));
    }
    out.texts.push_back(stop);
  }
  return out;
}

PreparedPrompts prepare_prompts(const Template& prompt_template, const std::vector<Problem>& problems,
                                const Tokenizer& tokenizer, int64_t max_prompt_length) {
  PreparedPrompts prepared;
  UnencodableRows unencodable(tokenizer);
  warn_of_replaced_system(prompt_template, problems);
  constexpr size_t kTogether = 1000;
  std::vector<MarkedText> chats;
  for (size_t i = 0; i < problems.size(); ++i) {
    if (prompt_template.chat && i % kTogether == 0) {
      chats = render_chats(prompt_template, std::span(problems).subspan(i, std::min(kTogether, problems.size() - i)),
                           &tokenizer);
    }
    const MarkedText* chat = prompt_template.chat ? &chats[i % kTogether] : nullptr;
    std::vector<int32_t> ids = chat ? tokenizer.encode(*chat) : encode_prompt(prompt_template, problems[i], tokenizer);
    if (ids.empty() || static_cast<int64_t>(ids.size()) > max_prompt_length) {
      ++prepared.dropped;
      continue;
    }
    if (tokenizer.lacks_bytes())
      unencodable.look_at(chat ? chat->text : render(prompt_template, problems[i]), problems[i].id);
    prepared.ids.push_back(std::move(ids));
    prepared.problem.push_back(static_cast<int64_t>(i));
  }
  if (prepared.ids.empty()) {
    throw Error(ErrorKind::empty, str("all ", problems.size(), " prompts are longer than ", max_prompt_length,
                                      " tokens; raise the prompt limit"));
  }
  unencodable.say("prompts", std::ssize(prepared.ids));
  return prepared;
}

bool has_chat_template(const std::string& checkpoint) {
  return !checkpoint.empty() && !read_chat_files(checkpoint).text.empty();
}

void prepare_chat(Template& prompt_template, const std::string& checkpoint, const std::string& where) {
  std::string file = where;
  if (!checkpoint.empty()) {
    ChatFiles files = read_chat_files(checkpoint);
    prompt_template.tokens = std::move(files.tokens);
    if (prompt_template.text.empty()) {
      if (files.text.empty()) {
        throw Error(ErrorKind::config, str(where, ": ", printable(checkpoint, 400),
                                           " has no chat template (neither chat_template.jinja nor a chat_template in ",
                                           "tokenizer_config.json); name another template or a .jinja file"));
      }
      prompt_template.text = std::move(files.text);
      file = files.where;
    }
  } else if (prompt_template.text.empty()) {
    throw Error(ErrorKind::config,
                str(where, ": the template is read from a checkpoint's tokenizer, and here there is none; ",
                    "name another template or a .jinja file"));
  }
  settings_of(prompt_template, where);  // refused here, not at the first prompt
  prompt_template.program = ChatProgram::load(prompt_template.text, printable(file, 400));
}

MarkedText render_chat(const Template& prompt_template, const Problem& problem, const std::string& question,
                       const Tokenizer& tokenizer) {
  const Chat chat = chat_of(prompt_template, problem, question);
  return render_chats(prompt_template, std::span<const Chat>(&chat, 1), &tokenizer)[0];
}

void read_examples(Template& prompt_template, const std::string& where, const std::string& folder) {
  if (prompt_template.shots < 0 || prompt_template.shots > kMostShots) {
    throw Error(ErrorKind::config,
                str(where, ": shots = ", prompt_template.shots, ": expected 1 to ", kMostShots, ", or 0 for all"));
  }
  const int64_t most = prompt_template.shots > 0 ? prompt_template.shots + 1 : kMostShots + 1;
  const bool whole = prompt_template.few_shot.starts_with('/') || folder.empty();
  const std::string path = whole ? prompt_template.few_shot : path_join(folder, prompt_template.few_shot);
  prompt_template.examples.clear();
  read_json_lines(path, BadRows::stop, [&](const JsonRow& row) {
    if (std::ssize(prompt_template.examples) < most) prompt_template.examples.push_back(read_example_row(row));
  });
  if (prompt_template.shots == 0) prompt_template.shots = std::ssize(prompt_template.examples);
  if (prompt_template.shots == 0 || prompt_template.shots > kMostShots) {
    throw Error(ErrorKind::config,
                str(printable(path, 400), ": ", prompt_template.shots == 0 ? "no example" : "more than 64 examples",
                    "; say with shots how many of its rows are meant"));
  }
  if (std::ssize(prompt_template.examples) < prompt_template.shots) {
    throw Error(ErrorKind::empty, str(printable(path, 400), ": ", prompt_template.examples.size(),
                                      " examples, expected ", prompt_template.shots, " (shots of ", where, ")"));
  }
}

std::vector<Template::Example> examples_for(const Template& prompt_template, const Problem& problem) {
  std::vector<Template::Example> out;
  for (const Template::Example& example : prompt_template.examples) {
    if (std::ssize(out) < prompt_template.shots && trim(example.question) != trim(problem.text)) out.push_back(example);
  }
  return out;
}

}  // namespace ucas
