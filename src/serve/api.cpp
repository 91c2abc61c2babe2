#include "serve/api.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr int64_t kMostSamples = 128, kMostStops = 64;
constexpr int64_t kUsualTokens = 16;  // of /completions, as OpenAI has it; a chat has all the room there is

// A refusal of a request, as it is answered.
struct ApiRefusal {
  int status = 400;
  std::string message;
};

HttpAnswer refusal(const ApiRefusal& why) {
  const char* type = why.status == 401   ? "authentication_error"
                     : why.status >= 500 ? "server_error"
                                         : "invalid_request_error";
  const OrderedJson error = {{"message", why.message}, {"type", type}, {"param", nullptr}, {"code", nullptr}};
  return {.status = why.status, .body = json_text(OrderedJson{{"error", error}})};
}

// Compared in a time that does not depend on where they differ.
bool same_key(const std::string& a, const std::string& b) { return hash_of_text(a) == hash_of_text(b); }

// ---------------------------------------------------------------------------------------------- what is asked

struct ApiRequest {
  ServeRequest ask;
  bool chat = false, streams = false, with_usage = false, with_ids = false, with_logprobs = false;
};

class ApiReader {
 public:
  ApiReader(const Json& body, bool chat, const ServedAs& as, int64_t room)
      : body_(body, "the request", ErrorKind::usage), chat_(chat), as_(as), room_(room) {}

  ApiRequest read() {
    check_keys();
    if (const Json* name = find("model"); name && *name != as_.name) {
      throw ApiRefusal{404,
                       str("no such model: ", printable(json_text(*name), 200), "; this one is \"", as_.name, "\"")};
    }
    ApiRequest out{.chat = chat_};
    ServeRequest& ask = out.ask;
    ask.prompt = chat_ ? chat_prompt() : prompt();
    ask.stop_ids = as_.stop_ids;
    if (chat_) ask.stop_ids.insert(ask.stop_ids.end(), as_.form_stops.ids.begin(), as_.form_stops.ids.end());
    const std::vector<int32_t> more = ids("stop_token_ids");
    ask.stop_ids.insert(ask.stop_ids.end(), more.begin(), more.end());
    ask.stop = stops();
    if (chat_) ask.stop.insert(ask.stop.end(), as_.form_stops.texts.begin(), as_.form_stops.texts.end());
    ask.samples = body_.whole_or("n", 1, 1, kMostSamples);
    ask.temperature = number("temperature", 1, 0, 100);
    if (ask.temperature > 0 && ask.temperature < 1e-3) refuse("\"temperature\": expected 0 (greedy) or at least 0.001");
    ask.top_p = number("top_p", 1, 1e-6, 1);
    ask.top_k = std::max<int64_t>(body_.whole_or("top_k", 0, -1, 1 << 24), 0);
    ask.min_p = number("min_p", 0, 0, 1);
    ask.key = key();
    ask.max_tokens = max_tokens(std::ssize(ask.prompt));
    out.streams = body_.truth_or("stream", false);
    if (const Json* options = find("stream_options")) {
      out.with_usage = options->is_object() && options->value("include_usage", Json()) == true;
    }
    out.with_ids = body_.truth_or("return_token_ids", false);
    const Json* logprobs = find("logprobs");
    out.with_logprobs = logprobs && *logprobs != false;
    if (logprobs && logprobs->is_number() && *logprobs > 1)
      refuse("\"logprobs\": only of sampled tokens; expected 0 or 1");
    return out;
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) { throw ApiRefusal{400, what}; }

  // What changes nothing is let through; what would, and is not supported, is refused unless it is off.
  void check_keys() const {
    constexpr std::string_view kKnown =
        " model max_tokens max_completion_tokens temperature top_p top_k min_p n seed stop stop_token_ids stream "
        "stream_options logprobs return_token_ids user metadata store ";
    static const std::map<std::string, Json> off = {
        {"presence_penalty", 0}, {"frequency_penalty", 0}, {"echo", false},           {"best_of", 1},
        {"suffix", ""},          {"top_logprobs", 0},      {"repetition_penalty", 1}, {"ignore_eos", false}};
    for (const auto& [key, value] : body_.json().items()) {
      if (kKnown.find(str(" ", key, " ")) != std::string_view::npos || key == (chat_ ? "messages" : "prompt") ||
          value.is_null())
        continue;
      const auto found = off.find(key);
      if (found != off.end() && found->second == value) continue;
      refuse(str("\"", printable(key, 60), "\" is not supported: leave it out",
                 found == off.end() ? "" : str(", or send ", json_text(found->second))));
    }
  }

  const Json* find(const char* key) const { return body_.find(key); }
  double number(const char* key, double usual, double low, double high) const {
    const double value = body_.number_or(key, usual);
    if (!(value >= low && value <= high)) body_.refuse(key, str("a number from ", low, " to ", high));
    return value;
  }
  std::vector<int32_t> ids(const char* key) const {
    return find(key) ? body_.ids(key, as_.vocab) : std::vector<int32_t>{};
  }

  std::vector<std::string> stops() const {
    const Json* value = find("stop");
    if (!value) return {};
    const Json list = value->is_array() ? *value : Json::array({*value});
    std::vector<std::string> out;
    for (const Json& stop : list) {
      if (!stop.is_string() || stop.get<std::string>().empty()) refuse("\"stop\": expected a text, or a list of texts");
      out.push_back(stop.get<std::string>());
    }
    if (std::ssize(out) > kMostStops) refuse(str("\"stop\": at most ", kMostStops));
    return out;
  }

  // A request without a seed has one of its own.
  uint32_t key() const {
    static std::atomic<uint64_t> next{0};
    const Json* value = find("seed");
    if (value && !value->is_number_integer()) refuse("\"seed\": expected a whole number");
    const std::string text = value ? json_text(*value) : str("request ", next++);
    return static_cast<uint32_t>(std::stoull(hash_of_text(text).substr(0, 8), nullptr, 16));
  }

  int64_t max_tokens(int64_t prompt) const {
    const int64_t left = room_ - prompt;
    const char* key = find("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
    const int64_t asked = body_.whole_or(key, chat_ ? std::max<int64_t>(left, 1) : kUsualTokens, 1, 1 << 30);
    if (asked > left) {
      refuse(str("the prompt has ", prompt, " tokens and ", key, " is ", asked, ", together more than the ", room_,
                 " that there is room for"));
    }
    return asked;
  }

  std::vector<int32_t> prompt() const {
    const Json* value = find("prompt");
    if (!value) refuse("\"prompt\" is missing");
    const bool wrapped = value->is_array() && !value->empty() && !value->front().is_number();
    if (wrapped && value->size() > 1) refuse("\"prompt\": one prompt a request; send several requests at once instead");
    const Json& one = wrapped ? value->front() : *value;
    std::vector<int32_t> out;
    if (one.is_string()) {
      out = as_.tokenizer->encode_prompt(one.get<std::string>());
    } else if (one.is_array()) {
      Json only = Json::object();
      only["prompt"] = one;
      out = JsonObject(only, "the request", ErrorKind::usage).ids("prompt", as_.vocab);
    } else {
      refuse("\"prompt\": expected a text or a list of token ids");
    }
    if (out.empty()) refuse("\"prompt\": empty");
    return out;
  }

  static std::string content_of(const Json& message) {
    const auto content = message.find("content");
    if (content == message.end()) refuse("\"messages\": one without \"content\"");
    if (content->is_string()) return content->get<std::string>();
    std::string text;
    if (!content->is_array()) refuse("\"messages\": expected \"content\" as a text");
    for (const Json& part : *content) {
      if (!part.is_object() || part.value("type", Json()) != "text" || !part.contains("text") ||
          !part.at("text").is_string()) {
        refuse("\"messages\": expected texts alone in \"content\"");
      }
      text += part.at("text").get<std::string>();
    }
    return text;
  }

  // A chat template has a place for every turn, others for one question, and maybe for a system message.
  std::vector<int32_t> chat_prompt() const {
    if (!as_.prompt_template)
      refuse(
          "chat completions are off: the checkpoint has no chat template, or the server was started with --template "
          "none; start it with --template NAME");
    const Json* messages = find("messages");
    if (!messages || !messages->is_array() || messages->empty()) refuse("\"messages\": expected a list of messages");
    Problem problem;
    size_t at = 0;
    const auto role = [&](size_t i) {
      return (*messages)[i].is_object() ? (*messages)[i].value("role", Json()) : Json();
    };
    if (role(0) == "system" || role(0) == "developer") {
      if (!takes_system(*as_.prompt_template)) {
        refuse(str("a system message has no place in the template ", as_.prompt_template->name));
      }
      problem.system = content_of((*messages)[at++]);
    }
    for (; as_.prompt_template->chat && at + 1 < messages->size(); ++at) {
      if (role(at) != "user" && role(at) != "assistant") refuse("\"messages\": expected turns of user and assistant");
      problem.earlier.push_back({role(at).get<std::string>(), content_of((*messages)[at])});
    }
    if (at + 1 != messages->size() || role(at) != "user") {
      refuse(
          "\"messages\": expected one of the user, after one of the system at most; longer talks have no place in a "
          "template, unless it is a chat template (--template chat)");
    }
    problem.text = content_of((*messages)[at]);
    return encode_prompt(*as_.prompt_template, problem, *as_.tokenizer);
  }

  const JsonObject body_;
  const bool chat_;
  const ServedAs& as_;
  const int64_t room_;
};

// --------------------------------------------------------------------------------------------- what is answered

class ApiWriter {
 public:
  ApiWriter(const ApiRequest& request, const ServedAs& as) : request_(request), as_(as), created_(std::time(nullptr)) {
    static std::atomic<uint64_t> next{0};
    id_ = str(request.chat ? "chatcmpl-" : "cmpl-", created_, "-", next++);
  }

  OrderedJson head(bool piece) const {
    const char* object = request_.chat ? (piece ? "chat.completion.chunk" : "chat.completion") : "text_completion";
    return {{"id", id_}, {"object", object}, {"created", created_}, {"model", as_.name}};
  }
  void count(const ServePiece& piece) { tokens_ += std::ssize(piece.ids); }
  OrderedJson usage() const {
    const auto prompt = std::ssize(request_.ask.prompt);
    return {{"prompt_tokens", prompt}, {"completion_tokens", tokens_}, {"total_tokens", prompt + tokens_}};
  }

  // With the whole text; of a stream with what is new of it.
  OrderedJson choice(const ServePiece& piece, const std::string& text, bool streamed) const {
    OrderedJson out = {{"index", piece.sample}};
    if (request_.chat) {
      out[streamed ? "delta" : "message"] = {{"role", "assistant"}, {"content", text}};
    } else {
      out["text"] = text;
    }
    out["logprobs"] = piece.ended && request_.with_logprobs ? logprobs(piece) : OrderedJson(nullptr);
    out["finish_reason"] = !piece.ended ? OrderedJson(nullptr) : OrderedJson(piece.finished ? "stop" : "length");
    if (piece.ended && request_.with_ids) out["token_ids"] = piece.ids;
    return out;
  }

 private:
  OrderedJson logprobs(const ServePiece& piece) const {
    OrderedJson content = OrderedJson::array(), tokens = OrderedJson::array();
    for (size_t i = 0; i < piece.ids.size(); ++i) {
      const std::string text =
          piece.ids[i] < as_.tokenizer->vocab_size() ? as_.tokenizer->token_text(piece.ids[i]) : "";
      if (request_.chat) {
        content.push_back({{"token", text}, {"logprob", piece.logprobs[i]}, {"top_logprobs", OrderedJson::array()}});
      } else {
        tokens.push_back(text);
      }
    }
    if (request_.chat) return {{"content", content}};
    return {
        {"tokens", tokens}, {"token_logprobs", piece.logprobs}, {"top_logprobs", nullptr}, {"text_offset", nullptr}};
  }

  const ApiRequest request_;
  const ServedAs& as_;
  const std::time_t created_;
  std::string id_;
  int64_t tokens_ = 0;
};

HttpAnswer whole_answer(ServeTicket& ticket, ApiWriter writer) {
  std::map<int64_t, std::string> texts;
  std::map<int64_t, OrderedJson> choices;
  while (const auto piece = ticket.next()) {
    texts[piece->sample] += piece->text;
    if (!piece->ended) continue;
    writer.count(*piece);
    choices[piece->sample] = writer.choice(*piece, texts[piece->sample], false);
  }
  OrderedJson body = writer.head(false);
  body["choices"] = OrderedJson::array();
  for (auto& [sample, choice] : choices) body["choices"].push_back(std::move(choice));
  body["usage"] = writer.usage();
  return {.body = json_text(body)};
}

// Server-sent events, one a piece.
void write_pieces(ServeTicket& ticket, ApiWriter writer, bool with_usage, const WritePiece& write) {
  const auto event = [&](const OrderedJson& body) { return write(str("data: ", json_text(body), "\n\n")); };
  try {
    while (const auto piece = ticket.next()) {
      if (piece->ended) writer.count(*piece);
      OrderedJson body = writer.head(true);
      body["choices"] = OrderedJson::array({writer.choice(*piece, piece->text, true)});
      if (!event(body)) return ticket.leave();
    }
    if (with_usage) {
      OrderedJson body = writer.head(true);
      body["choices"] = OrderedJson::array();
      body["usage"] = writer.usage();
      if (!event(body)) return;
    }
  } catch (const Error& error) {
    write(str("data: ", refusal({503, error.what()}).body, "\n\n"));
  }
  write("data: [DONE]\n\n");
}

}  // namespace

HttpAnswer ServeApi::complete(std::string& body, bool chat) {
  try {
    const ApiRequest request = [&] {
      const Json asked = parse_json(body, "the request");
      return ApiReader(asked, chat, as_, service_.room()).read();
    }();
    std::string().swap(body);  // an answer takes long
    const ApiWriter writer(request, as_);
    const std::shared_ptr<ServeTicket> ticket = service_.ask(request.ask);
    if (!request.streams) return whole_answer(*ticket, writer);
    return {.type = "text/event-stream",
            .pieces = [ticket, writer, with_usage = request.with_usage](const WritePiece& write) {
              write_pieces(*ticket, writer, with_usage, write);
            }};
  } catch (const ApiRefusal& why) {
    return refusal(why);
  } catch (const Error& error) {
    return refusal({error.kind() == ErrorKind::server ? 503 : 400, error.what()});
  } catch (const std::exception& error) {
    return refusal({500, error.what()});
  }
}

// Of the headers alone: a body is neither read nor unpacked for who has no key.
std::optional<HttpAnswer> ServeApi::without_key(const std::string& path, const HttpHeaders& headers) const {
  if (as_.key.empty() || path == "/health") return std::nullopt;
  const auto found = headers.find("authorization");
  const std::string given = found == headers.end() ? "" : found->second;
  constexpr std::string_view kScheme = "bearer ";  // of any case
  const bool bearer = std::ranges::equal(given.substr(0, kScheme.size()), kScheme, {},
                                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (bearer && same_key(given.substr(kScheme.size()), as_.key)) return std::nullopt;
  return refusal({401, "the key is missing or another one"});
}

HttpAnswer ServeApi::models() const {
  const OrderedJson model = {
      {"id", as_.name}, {"object", "model"}, {"owned_by", "ucas"}, {"max_model_len", service_.room()}};
  return {.body = json_text(OrderedJson{{"object", "list"}, {"data", OrderedJson::array({model})}})};
}

void ServeApi::add_to(HttpServer& server) {
  server.first([this](const std::string& path, const HttpHeaders& headers) { return without_key(path, headers); });
  server.get("/health",
             [](const std::string&, const HttpHeaders&) { return HttpAnswer{.body = "{\"status\":\"ok\"}"}; });
  server.get("/v1/models", [this](const std::string&, const HttpHeaders&) { return models(); });
  for (const bool chat : {false, true}) {
    server.post(chat ? "/v1/chat/completions" : "/v1/completions",
                [this, chat](std::string& body, const HttpHeaders&) { return complete(body, chat); });
  }
  server.otherwise([](int status) {
    static const std::map<int, const char*> kWhy = {
        {404, "no such path: /v1/completions, /v1/chat/completions, /v1/models, /health"},
        {408, "the request came too slowly"},
        {411, "the body: expected Content-Length, and no chunks"},
        {413, "the body has more than 1 MiB"},
        {415, "the body: expected JSON, not packed"},
        {431, "the head of the request has more than 64 KiB or 128 lines"}};
    const auto why = kWhy.find(status);
    return refusal({status, why == kWhy.end() ? str("HTTP ", status) : why->second});
  });
}

}  // namespace ucas
