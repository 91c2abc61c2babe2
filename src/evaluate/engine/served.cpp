#include "evaluate/engine/served.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "http/ask_many.h"
#include "stats/spread.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

// ---------------------------------------------------------------------------------------------- one reply, as said

// nullopt: damaged, or ended by the server's own trouble.
struct Answered {
  std::string text;
  int64_t tokens = -1;
  bool finished = true, end_known = true;
};

Answered read_choice(const Json& body, ServedApi api) {
  Answered out;
  const Json& choice = body.at("choices").at(0);
  if (api == ServedApi::chat) {
    const Json& message = choice.at("message");
    const auto content = message.find("content");
    if (content != message.end() && !content->is_null()) out.text = content->get<std::string>();
  } else {
    out.text = choice.at("text").get<std::string>();
  }
  const auto reason = choice.find("finish_reason");
  out.end_known = reason != choice.end() && reason->is_string();
  if (out.end_known) {
    const std::string word = reason->get<std::string>();
    if (word == "abort" || word == "error") throw std::runtime_error(str("finish_reason ", word));
    out.finished = word != "length";
  }
  const Json usage = body.value("usage", Json());
  const Json counted = usage.is_object() ? usage.value("completion_tokens", Json()) : Json();
  if (counted.is_number_unsigned()) out.tokens = counted.get<int64_t>();
  return out;
}

std::optional<Answered> answer_of(const HttpReply& reply, ServedApi api) {
  try {
    return read_choice(parse_json(reply.body, "reply"), api);
  } catch (const std::exception&) {  // not JSON, or not what the API says
    return std::nullopt;
  }
}

// --------------------------------------------------------------------------------------------------- what is asked

std::string endpoint_of(ServedApi api) { return api == ServedApi::chat ? "/chat/completions" : "/completions"; }

Json asked_with(const ServedModel& model, ServedApi api, const ServedPrompt& prompt, bool as_ids, int64_t max_tokens) {
  Json body = {{"model", model.name}, {"max_tokens", max_tokens}, {"temperature", 0}};
  if (api == ServedApi::chat) {
    body["messages"] = Json::array();
    if (!prompt.system.empty()) body["messages"].push_back({{"role", "system"}, {"content", prompt.system}});
    body["messages"].push_back({{"role", "user"}, {"content", prompt.text}});
  } else if (as_ids) {
    body["prompt"] = std::vector<int32_t>(prompt.ids.begin(), prompt.ids.end());
  } else {
    body["prompt"] = prompt.text;
  }
  return body;
}

// -------------------------------------------------------------------------------------------------- a first look

class Look {
 public:
  Look(const std::string& address, const ServerOptions& options)
      : options_(options), key_(api_key()), headers_(headers_with(key_)) {
    Url url = parse_url(address);
    if (url.path.empty()) url.path = "/v1";
    model_.address = url.text();
    const bool near = url.host == "localhost" || url.host == "::1" || url.host.starts_with("127.");
    if (!key_.empty() && !url.tls && !near) {
      warn(str(model_.address, ": the key goes there without TLS; anybody on the way can read it"));
    }
    client_ = std::make_unique<HttpClient>(url, std::min(options.request_timeout, 120.0));
  }

  ServedModel look() {
    name();
    const ServedPrompt one{.text = "1"};
    const Json least = asked_with(model_, options_.api, one, false, 1);
    const HttpReply reply = ask(least);
    if (reply.status != 200 || !answer_of(reply, options_.api)) {
      refuse(reply.status == 200 ? "a reply that is not that of the API" : words_of(reply, key_));
    }
    const auto takes = [&](const char* name, const Json& value) {
      Json body = least;
      body[name] = value;
      const HttpReply with = ask(body);
      return with.status == 200 && answer_of(with, options_.api);
    };
    model_.takes_seed = takes("seed", 1);
    model_.takes_top_k = takes("top_k", 1);
    model_.takes_stop_ids = takes("stop_token_ids", Json::array({0}));
    if (options_.api == ServedApi::completions && !options_.tokenizer.empty()) {
      const std::vector<int32_t> ids = {1, 2, 3};
      const HttpReply with = ask(asked_with(model_, options_.api, {.ids = ids}, true, 1));
      // Taken only if the server counts as many: else it read them as something else.
      if (with.status == 200 && answer_of(with, options_.api)) {
        const Json body = parse_json(with.body, "reply");  // answer_of() read it, too
        const Json usage = body.value("usage", Json());
        const Json counted = usage.is_object() ? usage.value("prompt_tokens", Json()) : Json();
        model_.takes_ids = !counted.is_number() || counted == 3;
      }
    }
    return model_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    const bool key = what.starts_with("HTTP 401") || what.starts_with("HTTP 403");
    throw Error(ErrorKind::server, str(model_.address, endpoint_of(options_.api), ": ", what,
                                       key ? "; the key is taken from UCAS_API_KEY or OPENAI_API_KEY" : ""));
  }

  // A server that has just started may be slow to say so: asked a few times.
  static HttpReply patiently(const std::function<HttpReply()>& once) { return ask_patiently(6, 0.2, 60, once); }
  HttpReply ask(const Json& body) const {
    return patiently([&] {
      HttpReply reply = client_->post(endpoint_of(options_.api), json_text(body), headers_);
      if (reply.status == 200 && !answer_of(reply, options_.api)) reply.status = 0, reply.failure = "a damaged reply";
      return reply;
    });
  }
  void name() {
    const HttpReply reply = patiently([&] {
      HttpReply one = client_->get("/models", headers_);
      if (one.status == 200 && !json_of(one.body)) one.status = 0, one.failure = "a damaged reply";
      return one;
    });
    if (reply.status == 0) {
      throw Error(ErrorKind::server,
                  str(model_.address, ": ", reply.failure, "; is the server running, and is this its address?"));
    }
    std::vector<std::string> names;
    if (reply.status == 200) {
      const Json body = parse_json(reply.body, "reply");  // as above
      const Json list = body.is_object() ? body.value("data", Json::array()) : Json::array();
      for (const Json& entry : list) {
        if (!entry.is_object() || !entry.contains("id") || !entry.at("id").is_string()) continue;
        names.push_back(entry.at("id").get<std::string>());
        const bool mine = options_.served_model.empty() || names.back() == options_.served_model;
        const auto length = entry.find("max_model_len");
        if (mine && length != entry.end() && length->is_number_unsigned()) model_.positions = length->get<int64_t>();
      }
    } else if (reply.status == 401 || reply.status == 403) {
      refuse(words_of(reply, key_));
    }
    model_.name = options_.served_model;
    if (!model_.name.empty()) return;
    if (names.size() != 1) {
      throw Error(ErrorKind::server,
                  str(model_.address, ": it has ",
                      names.empty() ? std::string("no list of models")
                                    : str(names.size(), " models, ", printable(join(names, ", "), 300)),
                      "; choose one with --served_model NAME"));
    }
    model_.name = names[0];
  }

  const ServerOptions& options_;
  const std::string key_;
  const HttpHeaders headers_;
  ServedModel model_;
  std::unique_ptr<HttpClient> client_;
};

// ------------------------------------------------------------------------------------------------- many requests

class Asking {
 public:
  Asking(const ServedModel& model, const ServerOptions& options, const ServedSource::Sampling& asked,
         const ResponseRequest& request)
      : model_(model), options_(options), asked_(asked), request_(request) {
    for (size_t j = 0; j < request.jobs.size(); ++j) {
      for (int64_t i = 0; i < request.jobs[j].count; ++i) items_.push_back({j, request.jobs[j].first + i});
    }
    answers_.resize(items_.size());
  }

  AskMany requests() {
    return AskMany({parse_url(model_.address)}, items_.size(),
                   {options_.requests, options_.retries, options_.request_timeout, options_.patience},
                   {.path = endpoint_of(options_.api),
                    .ask = [this](size_t item) { return body_of(items_[item]); },
                    .read =
                        [this](size_t item, const HttpReply& reply) {
                          answers_[item] = answer_of(reply, options_.api);
                          return std::string(answers_[item] ? "" : "a damaged reply");
                        },
                    .took = [this](size_t item) { take(item); },
                    .should_stop = request_.should_stop});
  }

 private:
  struct Item {
    size_t job;
    int64_t sample;
  };
  std::string body_of(const Item& item) const {
    const ResponseJob& job = request_.jobs[item.job];
    const Problem& problem = asked_.problems[job.problem];
    const ServedPrompt& prompt = asked_.prompts[job.problem];
    const EvalConfig& config = request_.config;
    const bool as_ids = model_.takes_ids && !prompt.ids.empty();
    Json body =
        asked_with(model_, options_.api, prompt, as_ids, job.max_tokens > 0 ? job.max_tokens : config.max_tokens);
    if (!job.greedy) {
      body["temperature"] = config.temperature;
      body["top_p"] = config.top_p;
      if (config.top_k > 0) body["top_k"] = config.top_k;
      if (config.min_p > 0) body["min_p"] = config.min_p;
      if (model_.takes_seed) {
        // One for each response: a server knows nothing of the others.
        const std::string key = str(config.seed, "\n", job.key, "\n", item.sample);
        body["seed"] = std::stoll(hash_of_text(key).substr(0, 7), nullptr, 16);
      }
    }
    if (model_.takes_stop_ids && !job.stop_ids.empty()) {
      body["stop_token_ids"] = std::vector<int32_t>(job.stop_ids.begin(), job.stop_ids.end());
      if (job.end_texts != nullptr) body["stop"] = *job.end_texts;
    } else if (const auto stops = asked_.stop_texts.find(problem.source);
               stops != asked_.stop_texts.end() && !stops->second.empty()) {
      body["stop"] = stops->second;
    }
    return json_text(body);
  }

  void take(size_t at) {
    const Item& item = items_[at];
    const ResponseJob& job = request_.jobs[item.job];
    const Problem& problem = asked_.problems[job.problem];
    Answered a = *std::exchange(answers_[at], std::nullopt);
    Output output;
    output.source = problem.source;
    output.id = problem.id;
    output.sample = job.greedy ? kGreedySample : item.sample;
    output.text = replace_invalid(a.text);
    output.tokens = a.tokens;
    output.finished = a.finished;
    output.end_known = a.end_known;
    output.logprob = output.entropy = output.confidence = kUnknown;
    request_.ended(item.job, std::move(output));
  }

  const ServedModel& model_;
  const ServerOptions& options_;
  const ServedSource::Sampling& asked_;
  const ResponseRequest& request_;
  std::vector<Item> items_;
  std::vector<std::optional<Answered>> answers_;  // from its reply until it is taken
};

}  // namespace

std::string ServedModel::text() const {
  return str(address, ": ", printable(name, 200), takes_ids ? "; takes token ids" : "",
             takes_seed ? "; takes a seed" : "", positions > 0 ? str("; ", grouped(positions), " positions") : "");
}

ServedModel look_at_server(const std::string& address, const ServerOptions& options) {
  return Look(address, options).look();
}

ServedSource::ServedSource(const ServedModel& model, const ServerOptions& options, Sampling asked)
    : model_(model), options_(options), asked_(std::move(asked)) {}

void ServedSource::run(const ResponseRequest& request) {
  Asking answers(model_, options_, asked_, request);
  AskMany asking = answers.requests();
  asking.run();
  tried_again_ += asking.tried_again_count();
  if (tried_again_ > 0) log(str(model_.address, ": ", grouped(tried_again_), " requests were tried again"));
  const std::string missing = asking.missing();
  if (missing.empty() && asking.gave_up().empty()) return;
  throw Error(
      ErrorKind::server,
      str(model_.address, ": ", grouped(asking.asked() - asking.came()), " of ", grouped(asking.asked()),
          " responses are missing", asking.gave_up().empty() ? "" : str(": ", asking.gave_up()),
          missing.empty() ? "" : str("; last seen: ", missing),
          "; none of them is counted. With --out the others are kept, and the same command asks for these alone"),
      kInterrupted);
}

}  // namespace ucas
