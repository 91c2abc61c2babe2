#include "evaluate/engine/served.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "http/client.h"
#include "stats/spread.h"
#include "text/unicode.h"

namespace ucas {

namespace {

constexpr double kFirstWait = 0.25, kLongestWait = 20;  // seconds before a second try, and before any
constexpr int64_t kRefusedAtOnce = 8;                   // refusals with no response between them: the rest is not asked

std::string api_key() {
  for (const char* name : {"UCAS_API_KEY", "OPENAI_API_KEY"}) {
    const char* value = std::getenv(name);
    if (value && *value) return value;
  }
  return "";
}

HttpHeaders headers_with(const std::string& key) {
  HttpHeaders headers;
  if (!key.empty()) headers["Authorization"] = str("Bearer ", key);
  return headers;
}

// As hostile as a file is. nullopt: no JSON, or more of it than is read.
std::optional<Json> json_of(const HttpReply& reply) {
  try {
    return parse_json(reply.body, "reply");
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A server's own words, without the key: some repeat it.
std::string words_of(const HttpReply& reply, const std::string& key) {
  if (reply.status == 0) return reply.failure;
  std::string text = reply.body;
  if (const std::optional<Json> body = json_of(reply)) {
    const Json* found = &*body;
    for (const char* name : {"error", "detail", "message"}) {
      if (found->is_object() && found->contains(name) && !found->at(name).is_null()) found = &found->at(name);
    }
    text = found->is_string() ? found->get<std::string>() : json_text(*found);
  }
  for (size_t at; !key.empty() && (at = text.find(key)) != std::string::npos;) text.replace(at, key.size(), "***");
  return str("HTTP ", reply.status, text.empty() ? "" : ": ", printable(trim(text), 200));
}

// "Retry-After: 7" in seconds; below 0: not said. Dates are not read.
double wait_asked(const HttpReply& reply) {
  const auto found = reply.headers.find("retry-after");
  if (found == reply.headers.end()) return -1;
  char* end = nullptr;
  const double seconds = std::strtod(found->second.c_str(), &end);
  return end == found->second.c_str() || !(seconds >= 0) ? -1 : std::min(seconds, 3600.0);
}

bool tried_again(int status) {
  return status == 0 || status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

// ---------------------------------------------------------------------------------------------- one reply, as said

// nullopt: damaged, or ended by the server's own trouble.
struct Answered {
  std::string text;
  std::vector<int32_t> ids;
  int64_t tokens = -1;
  bool finished = true, end_known = true;
  double logprob = kUnknown;
};

// Sum of "logprob" of each of `list`, or of the numbers themselves.
double sum_of(const Json& list) {
  double sum = 0;
  for (const Json& entry : list) {
    const Json& number = entry.is_object() ? entry.at("logprob") : entry;
    if (!number.is_number()) return kUnknown;
    sum += number.get<double>();
  }
  return list.empty() ? kUnknown : sum;
}

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
  const auto logprobs = choice.find("logprobs");
  int64_t counted = -1;
  if (logprobs != choice.end() && logprobs->is_object()) {
    const char* key = api == ServedApi::chat ? "content" : "token_logprobs";
    const auto list = logprobs->find(key);
    if (list != logprobs->end() && list->is_array()) {
      out.logprob = sum_of(*list);
      counted = static_cast<int64_t>(list->size());
    }
  }
  const auto ids = choice.find("token_ids");
  if (ids != choice.end() && ids->is_array()) {
    for (const Json& id : *ids) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
        throw std::runtime_error("token_ids");
      }
      out.ids.push_back(id.get<int32_t>());
    }
  }
  const auto usage = body.find("usage");
  if (usage != body.end() && usage->is_object() && usage->contains("completion_tokens") &&
      usage->at("completion_tokens").is_number_unsigned()) {
    out.tokens = usage->at("completion_tokens").get<int64_t>();
  } else {
    out.tokens = counted;
  }
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

void add_logprobs(Json& body, ServedApi api) {
  if (api == ServedApi::chat) {
    body["logprobs"] = true;
  } else {
    body["logprobs"] = 1;  // 0 would be enough, but some servers take it for "none"
  }
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
      return fine(body);
    };
    model_.takes_seed = takes("seed", 1).has_value();
    model_.takes_top_k = takes("top_k", 1).has_value();
    model_.takes_stop_ids = takes("stop_token_ids", Json::array({0})).has_value();
    const std::optional<Answered> with_ids = takes("return_token_ids", true);
    model_.gives_ids = with_ids && !with_ids->ids.empty();
    Json logprobs = least;
    add_logprobs(logprobs, options_.api);
    const std::optional<Answered> with_logprobs = fine(logprobs);
    model_.gives_logprobs = with_logprobs && std::isfinite(with_logprobs->logprob);
    if (options_.api == ServedApi::completions && options_.prompts != PromptForm::text) {
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
    throw Error("server", str(model_.address, endpoint_of(options_.api), ": ", what,
                              key ? "; the key is taken from UCAS_API_KEY or OPENAI_API_KEY" : ""));
  }

  // A server that has just started may be slow to say so: asked a few times.
  HttpReply patiently(const std::function<HttpReply()>& once) const {
    HttpReply reply = once();
    double wait = 0.2;
    for (int n = 0; n < 6 && reply.status != 200 && tried_again(reply.status); ++n, wait *= 2) {
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
      reply = once();
    }
    return reply;
  }
  HttpReply ask(const Json& body) const {
    return patiently([&] {
      HttpReply reply = client_->post(endpoint_of(options_.api), json_text(body), headers_);
      if (reply.status == 200 && !answer_of(reply, options_.api)) reply.status = 0, reply.failure = "a damaged reply";
      return reply;
    });
  }
  std::optional<Answered> fine(const Json& body) const {
    const HttpReply reply = ask(body);
    return reply.status == 200 ? answer_of(reply, options_.api) : std::nullopt;
  }

  void name() {
    const HttpReply reply = patiently([&] {
      HttpReply one = client_->get("/models", headers_);
      if (one.status == 200 && !json_of(one)) one.status = 0, one.failure = "a damaged reply";
      return one;
    });
    if (reply.status == 0) {
      throw Error("server",
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
      throw Error("server", str(model_.address, ": it has ",
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
  Asking(const ServedModel& model, const ServerOptions& options, const ServedSource::Asked& asked,
         const ResponseRequest& request)
      : model_(model),
        options_(options),
        asked_(asked),
        request_(request),
        key_(api_key()),
        headers_(headers_with(key_)) {
    for (size_t j = 0; j < request.jobs.size(); ++j) {
      for (int64_t i = 0; i < request.jobs[j].count; ++i) items_.push_back({j, request.jobs[j].first + i});
    }
  }

  void run() {
    const auto threads = std::min<size_t>(static_cast<size_t>(options_.requests), items_.size());
    progressed_ = now_seconds();
    for (size_t i = 0; i < threads; ++i)
      workers_.push_back(std::make_unique<Worker>(parse_url(model_.address), options_));
    for (auto& worker : workers_) worker->thread = std::thread([this, &worker] { work(*worker); });
    try {
      collect();
    } catch (...) {
      end();
      throw;
    }
    end();
  }
  int64_t tried_again_count() const { return again_; }
  // "2 x HTTP 500: .., 1 x no connection"; "" where all came.
  std::string missing() const {
    if (lost_.empty()) return gave_up_.empty() ? "" : recent_;
    std::vector<std::string> parts;
    for (const auto& [why, count] : lost_) {
      if (parts.size() == 4) {
        parts.push_back("..");
        break;
      }
      parts.push_back(str(grouped(count), " x ", why));
    }
    return join(parts, ", ");
  }
  int64_t came() const { return came_; }
  int64_t asked() const { return static_cast<int64_t>(items_.size()); }
  const std::string& gave_up() const { return gave_up_; }

 private:
  struct Item {
    size_t job;
    int64_t sample;
  };
  struct Worker {
    Worker(const Url& url, const ServerOptions& options) : client(url, options.request_timeout) {}
    HttpClient client;
    std::thread thread;
    std::atomic<double> since{0};  // when its request began; 0: none is under way
  };
  struct Ended {
    size_t item;
    std::optional<Answered> answer;
    std::string why;  // where there is none
    bool refused = false;
  };

  void work(Worker& worker);
  Ended attempt(Worker& worker, size_t item);
  std::string body_of(const Item& item) const;
  void pause(double seconds);
  void collect();
  void take(Ended ended);
  void stop();
  void end();

  const ServedModel& model_;
  const ServerOptions& options_;
  const ServedSource::Asked& asked_;
  const ResponseRequest& request_;
  const std::string key_;
  const HttpHeaders headers_;
  std::vector<Item> items_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> again_{0};
  std::mutex mutex_;
  std::condition_variable wake_;  // of collect(), and of those that wait for a second try
  std::deque<Ended> ended_;
  size_t working_ = 0;
  std::string recent_;  // why a try failed, the last one
  // of collect() alone
  double progressed_ = 0;
  int64_t came_ = 0, refused_in_a_row_ = 0;
  std::map<std::string, int64_t> lost_;
  std::string gave_up_;
};

std::string Asking::body_of(const Item& item) const {
  const ResponseJob& job = request_.jobs[item.job];
  const Problem& problem = asked_.problems[job.problem];
  const ServedPrompt& prompt = asked_.prompts[job.problem];
  const EvalConfig& config = request_.config;
  const bool as_ids = model_.takes_ids && !prompt.ids.empty();
  Json body = asked_with(model_, options_.api, prompt, as_ids, job.max_tokens > 0 ? job.max_tokens : config.max_tokens);
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
  } else if (const auto stops = asked_.stop_texts.find(problem.source);
             stops != asked_.stop_texts.end() && !stops->second.empty()) {
    body["stop"] = stops->second;
  }
  if (model_.gives_ids) body["return_token_ids"] = true;
  if (model_.gives_logprobs) add_logprobs(body, options_.api);
  return json_text(body);
}

void Asking::work(Worker& worker) {
  {
    const std::lock_guard lock(mutex_);
    ++working_;
  }
  for (size_t item; !stopping_ && (item = next_++) < items_.size();) {
    Ended ended = attempt(worker, item);
    const std::lock_guard lock(mutex_);
    if (!stopping_ || ended.answer) ended_.push_back(std::move(ended));
    wake_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  --working_;
  wake_.notify_all();
}

// Until there is a whole answer, a refusal, or no try left. Waiting because the server asks for it takes none.
Asking::Ended Asking::attempt(Worker& worker, size_t item) {
  Ended out{.item = item};
  const std::string body = body_of(items_[item]);
  for (int64_t tries = 0; !stopping_;) {
    worker.since = now_seconds();
    const HttpReply reply = worker.client.post(endpoint_of(options_.api), body, headers_);
    worker.since = 0;
    if (reply.status == 200) {
      if ((out.answer = answer_of(reply, options_.api))) return out;
      out.why = "a damaged reply";
    } else {
      out.why = words_of(reply, key_);
      if (!tried_again(reply.status)) {
        out.refused = true;
        return out;
      }
    }
    const double asked = reply.status == 429 || reply.status == 503 ? wait_asked(reply) : -1;
    if (asked < 0 && tries++ >= options_.retries) return out;
    ++again_;
    {
      const std::lock_guard lock(mutex_);
      recent_ = out.why;
    }
    const auto key = SampleKey{.step = static_cast<uint32_t>(tries), .problem = static_cast<uint32_t>(item)};
    const double backoff =
        std::min(kFirstWait * std::pow(2.0, static_cast<double>(std::max<int64_t>(tries - 1, 0))), kLongestWait);
    pause(asked >= 0 ? asked + 0.1 * uniform(key) : backoff * (0.5 + uniform(key)));
  }
  return out;
}

void Asking::pause(double seconds) {
  const double until = now_seconds() + seconds;
  std::unique_lock lock(mutex_);
  while (!stopping_ && now_seconds() < until) {
    wake_.wait_for(lock, std::chrono::duration<double>(std::min(until - now_seconds(), 0.2)));
  }
}

void Asking::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker->client.stop();
}

void Asking::end() {
  stop();
  for (auto& worker : workers_) {
    // One that was between two requests when it was told begins none; one that just began is told again.
    while (worker->since > 0) {
      worker->client.stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    worker->thread.join();
  }
  for (Ended& ended : ended_) take(std::move(ended));  // answers that came meanwhile
  ended_.clear();
}

void Asking::take(Ended ended) {
  if (!ended.answer) {
    if (!ended.why.empty()) ++lost_[ended.why];
    refused_in_a_row_ = ended.refused ? refused_in_a_row_ + 1 : 0;
    return;
  }
  refused_in_a_row_ = 0;
  progressed_ = now_seconds();
  ++came_;
  const Item& item = items_[ended.item];
  const ResponseJob& job = request_.jobs[item.job];
  const Problem& problem = asked_.problems[job.problem];
  Answered& a = *ended.answer;
  Output output;
  output.source = problem.source;
  output.id = problem.id;
  output.sample = job.greedy ? kGreedySample : item.sample;
  output.text = replace_invalid(a.text);
  output.ids = std::move(a.ids);
  output.tokens = output.ids.empty() ? a.tokens : -1;
  output.finished = a.finished;
  output.end_known = a.end_known;
  output.logprob = a.logprob;
  output.entropy = output.confidence = kUnknown;
  request_.ended(item.job, std::move(output));
}

void Asking::collect() {
  for (;;) {
    std::deque<Ended> ended;
    bool over = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(100), [&] { return !ended_.empty(); });
      ended.swap(ended_);
      over = ended.empty() && working_ == 0 && next_ >= items_.size();
    }
    for (Ended& one : ended) take(std::move(one));
    if (over || (request_.should_stop && request_.should_stop())) return;
    const double now = now_seconds();
    for (auto& worker : workers_) {  // replies that come drop by drop never time out by themselves
      const double since = worker->since;
      if (since > 0 && now - since > options_.request_timeout) worker->client.stop();
    }
    if (now - progressed_ > options_.patience) {
      gave_up_ = str("no response for ", human_seconds(options_.patience), " (--patience)");
    } else if (refused_in_a_row_ >= kRefusedAtOnce && came_ == 0) {
      gave_up_ = "the server refuses them all";
    } else {
      continue;
    }
    return;
  }
}

}  // namespace

std::string ServedModel::text() const {
  const auto yes = [](bool is, const char* what) { return is ? std::string(what) : std::string(); };
  std::vector<std::string> parts = {yes(takes_ids, "takes token ids"), yes(gives_ids, "gives token ids"),
                                    yes(gives_logprobs, "gives log-probs"), yes(takes_seed, "takes a seed")};
  std::erase(parts, "");
  return str(address, ": ", printable(name, 200), parts.empty() ? "" : "; ", join(parts, ", "),
             positions > 0 ? str(", ", grouped(positions), " positions") : "");
}

std::map<std::string, std::string> ServedModel::facts() const {
  const auto word = [](bool is) { return std::string(is ? "yes" : "no"); };
  return {{"address", address},
          {"name", name},
          {"positions", positions > 0 ? str(positions) : "not said"},
          {"prompts_as_ids", word(takes_ids)},
          {"token_ids", word(gives_ids)},
          {"log_probs", word(gives_logprobs)},
          {"seeds", word(takes_seed)}};
}

ServedModel look_at_server(const std::string& address, const ServerOptions& options) {
  return Look(address, options).look();
}

ServedSource::ServedSource(const ServedModel& model, const ServerOptions& options, Asked asked)
    : model_(model), options_(options), asked_(std::move(asked)) {}

void ServedSource::run(const ResponseRequest& request) {
  Asking asking(model_, options_, asked_, request);
  asking.run();
  tried_again_ += asking.tried_again_count();
  if (tried_again_ > 0) log(str(model_.address, ": ", grouped(tried_again_), " requests were tried again"));
  const std::string missing = asking.missing();
  if (missing.empty() && asking.gave_up().empty()) return;
  throw Error(
      "server",
      str(model_.address, ": ", grouped(asking.asked() - asking.came()), " of ", grouped(asking.asked()),
          " responses are missing", asking.gave_up().empty() ? "" : str(": ", asking.gave_up()),
          missing.empty() ? "" : str("; last seen: ", missing),
          "; none of them is counted. With --out the others are kept, and the same command asks for these alone"),
      kInterrupted);
}

}  // namespace ucas
