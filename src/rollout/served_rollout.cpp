#include "rollout/served_rollout.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "http/ask_many.h"
#include "records/run/run_directory.h"
#include "train/signals/logprobs.h"

namespace ucas {

namespace {

constexpr int64_t kKnownTokens = 64;  // of the response that is part of the known text, at most
constexpr uint32_t kKnownSeed = 1;
constexpr double kTaking = 120;  // seconds at least for a weight sync's call: weights are read from a disk
// Old and new weights are distinguished only if they move log-probs by more than the rounding of f32.
constexpr double kMoved = 1e-5;

// A seed for each response: a server knows nothing of the others.
uint32_t seed_of(const RolloutRequest& request, const PromptJob& job, uint32_t sample) {
  const auto sampled = philox({request.step, job.problem, sample, 0x5eed}, philox_key(request.seed));
  return sampled[0] & 0x7fffffff;
}

double mean_difference(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return a.empty() ? 0 : sum / static_cast<double>(a.size());
}

std::vector<Url> parse_urls(const std::vector<std::string>& texts) {
  std::vector<Url> urls;
  for (const std::string& text : texts) urls.push_back(parse_url(text));
  return urls;
}

// The name of the only model of a vLLM server.
std::string only_model(const HttpReply& reply, const std::string& address, const std::string& why) {
  std::vector<std::string> names;
  if (const std::optional<Json> body = json_of(reply.body); reply.status == 200 && body && body->is_object()) {
    for (const Json& entry : body->value("data", Json::array())) {
      if (entry.is_object() && entry.contains("id") && entry.at("id").is_string()) names.push_back(entry.at("id"));
    }
  }
  if (names.size() == 1) return names[0];
  throw Error(
      ErrorKind::server,
      str(address, "/v1/models: ", reply.status != 200 ? why : str(names.size(), " models"),
          reply.status == 0 ? "; is the server running, and is this its address?" : "; start the server with one"),
      kInterrupted);
}

struct Item {
  size_t job;
  uint32_t sample;
};

// Stop strings are applied client-side: the text after one is dropped.
void end_at_text(const std::function<bool(const Episode&)>& ends, Episode& episode) {
  Episode part = episode;
  part.token.clear();
  for (const int32_t token : episode.token) {
    part.token.push_back(token);
    if (!ends(part)) continue;
    episode.token.resize(part.token.size());
    episode.logprob.resize(part.token.size());
    episode.finished = true;
    return;
  }
}

std::vector<int32_t> list_of(std::span<const int32_t> ids) { return {ids.begin(), ids.end()}; }

int32_t id_of(const Json& id) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
    throw std::runtime_error(str("a token id that is ", json_text(id).substr(0, 40)));
  }
  return id.get<int32_t>();
}

double number_of(const Json& value) {
  if (!value.is_number()) throw std::runtime_error(str("a log-prob that is ", json_text(value).substr(0, 40)));
  return value.get<double>();
}

bool stopped_by(const std::string& reason) {
  if (reason != "stop" && reason != "length") throw std::runtime_error(str("it ended by ", printable(reason, 40)));
  return reason == "stop";
}

}  // namespace

ServedRollout::ServedRollout(const TrainRolloutConfig& config, Model& model, std::vector<int32_t> known_prompt,
                             std::vector<int32_t> stop_ids, int64_t token_budget)
    : config_(config),
      model_(model),
      servers_(parse_urls(config.servers)),
      known_prompt_(std::move(known_prompt)),
      stop_ids_(std::move(stop_ids)),
      token_budget_(token_budget) {
  const HttpReply reply =
      HttpClient(servers_[0], std::min(config.request_timeout, 60.0)).get("/v1/models", headers_with(api_key()));
  name_ = only_model(reply, servers_[0].text(), words_of(reply, api_key()));
}

// What a reply says, as far as it can be true; else why not.
std::string ServedRollout::read(const SamplerAsk& ask, const HttpReply& reply, Episode& into) const {
  SamplerReply said;
  try {
    said = vllm_sampled(reply.body);
  } catch (const std::exception& problem) {
    return str("a damaged reply (", printable(problem.what(), 120), ")");
  }
  const auto count = static_cast<int64_t>(said.token.size());
  if (said.token.size() != said.logprob.size()) {
    return str("a damaged reply (", count, " tokens with ", said.logprob.size(), " log-probs)");
  }
  if (count == 0 || count > ask.max_tokens) return str(count, " tokens where 1 to ", ask.max_tokens, " were requested");
  for (size_t t = 0; t < said.token.size(); ++t) {
    if (said.token[t] >= model_.config().vocab_size) {
      return str("token id ", said.token[t], " is outside of the vocabulary of ", model_.config().vocab_size, " ids");
    }
    if (!(said.logprob[t] <= 1e-3 && said.logprob[t] > -1e4)) {
      return str("a log-prob of ", said.logprob[t], " is none");
    }
  }
  const bool by_stop = std::ranges::find(ask.stop_ids, said.token.back()) != ask.stop_ids.end();
  if (said.stopped && !by_stop) {
    return str("a response ended by token ", said.token.back(), ", which is no stop token of the run");
  }
  if (!by_stop && count < ask.max_tokens) {
    return str("a response of ", count, " tokens that neither ended nor reached its ", ask.max_tokens);
  }
  into.token = std::move(said.token);
  into.logprob.assign(said.logprob.begin(), said.logprob.end());
  for (float& value : into.logprob) value = std::min(value, 0.0f);
  into.finished = by_stop;
  return "";
}

std::vector<Episode> ServedRollout::run(const RolloutRequest& request) {
  std::vector<Item> items;
  for (size_t j = 0; j < request.jobs.size(); ++j) {
    for (int64_t i = 0; i < request.jobs[j].samples; ++i) {
      items.push_back({j, request.jobs[j].first_sample + static_cast<uint32_t>(i)});
    }
  }
  if (items.empty()) return {};
  const auto ask_of = [&](size_t item) {
    const PromptJob& job = request.jobs[items[item].job];
    return SamplerAsk{
        .prompt = job.prompt,
        .stop_ids = job.stop_ids.empty() ? std::span<const int32_t>(request.limits.stop_ids) : job.stop_ids,
        .max_tokens = job.max_tokens > 0 ? job.max_tokens : request.sampling.max_tokens,
        .temperature = job.greedy ? 0 : request.sampling.temperature,
        .seed = seed_of(request, job, items[item].sample)};
  };
  std::vector<Episode> results(items.size());
  std::vector<uint8_t> came(items.size());
  const auto took = [&](size_t item) {
    Episode& s = results[item];
    s.job = static_cast<int64_t>(items[item].job);
    s.sample = items[item].sample;
    came[item] = 1;
    if (request.limits.ends) end_at_text(request.limits.ends, s);
    if (request.sink.on_response) request.sink.on_response(s);
  };
  AskMany asking(servers_, items.size(),
                 {kRequestsInFlight, config_.retries, config_.request_timeout, config_.patience},
                 {.path = kVllmPath,
                  .ask = [&](size_t item) { return vllm_sample(name_, ask_of(item)); },
                  .read = [&](size_t item, const HttpReply& reply) { return read(ask_of(item), reply, results[item]); },
                  .took = took,
                  .should_stop = request.limits.should_stop});
  asking.run();
  tried_again_ += asking.tried_again_count();
  const std::string missing = asking.missing();
  if (!missing.empty() || !asking.gave_up().empty()) {
    throw Error(ErrorKind::server,
                str(join(config_.servers, ", "), ": ", grouped(asking.asked() - asking.came()), " of ",
                    grouped(asking.asked()), " responses are missing", asking.gave_up().empty() ? "" : ": ",
                    asking.gave_up(), missing.empty() ? "" : str("; last seen: ", missing)),
                kInterrupted);
  }
  std::vector<Episode> out;
  for (size_t item = 0; item < items.size() && request.sink.keep; ++item) {
    if (came[item]) out.push_back(std::move(results[item]));
  }
  return out;
}

// One call, retried like any request, for rollout.patience; the first retry is logged.
HttpReply ServedRollout::call(size_t server, const std::string& path, const std::string& body, double timeout) const {
  HttpClient client(servers_[server], timeout);
  bool said = false;
  return ask_patiently(
      config_.retries, 0.25, config_.patience, [&] { return client.post(path, body, headers_with(api_key())); },
      [&](const HttpReply& reply) {
        if (!said) {
          warn(str(servers_[server].text(), path, ": ", words_of(reply, api_key()), "; retried for up to ",
                   human_seconds(config_.patience), " (rollout.patience)"));
        }
        said = true;
      });
}

void ServedRollout::load_weights(size_t server, const std::string& directory) const {
  for (const VllmCall& step : vllm_hand_over(directory, str(weights_))) {
    const HttpReply reply = call(server, step.path, step.body, std::max(config_.request_timeout, kTaking));
    const std::string refused = reply.status == 200 ? vllm_refuses(reply.body) : words_of(reply, api_key());
    if (refused.empty()) continue;
    const bool unknown = reply.status == 404;
    throw Error(
        ErrorKind::server,
        str(servers_[server].text(), step.path, ": the weights of step ", weights_, " (", directory,
            ") are not taken: ", printable(refused, 200), unknown ? "; start vLLM with VLLM_SERVER_DEV_MODE=1" : ""),
        kInterrupted);
  }
}

std::vector<double> ServedRollout::own_scores(std::span<const int32_t> ids, size_t prompt, double temperature) const {
  Batch batch;
  batch.groups.push_back({.first = 0, .count = 1, .prompt = {ids.begin(), ids.begin() + prompt}});
  batch.token.assign(ids.begin() + static_cast<std::ptrdiff_t>(prompt), ids.end());
  batch.responses.push_back({.length = static_cast<int64_t>(batch.token.size())});
  const std::vector<float> values = compute_logprobs(model_, batch, temperature, token_budget_);
  return {values.begin(), values.end()};
}

// Asks until `take` finds nothing wrong with a reply; "" then, else why there is none.
std::string ServedRollout::ask(size_t server, const std::string& body, double timeout,
                               const std::function<std::string(const HttpReply&)>& take) const {
  std::string why;
  for (int64_t tries = 0; tries <= config_.retries; ++tries) {
    const HttpReply reply = call(server, kVllmPath, body, timeout);
    if (reply.status != 200) return words_of(reply, api_key());
    why = take(reply);
    if (why.empty()) break;
  }
  return why;
}

// A response to the known prompt, sampled as in training.
Episode ServedRollout::sample_known(size_t server) const {
  const SamplerAsk asked{.prompt = known_prompt_,
                         .stop_ids = stop_ids_,
                         .max_tokens = std::min(config_.response_length, kKnownTokens),
                         .temperature = config_.temperature,
                         .seed = kKnownSeed};
  Episode sampled;
  const std::string why = ask(server, vllm_sample(name_, asked), config_.request_timeout,
                              [&](const HttpReply& reply) { return read(asked, reply, sampled); });
  if (why.empty()) return sampled;
  throw Error(ErrorKind::server, str(servers_[server].text(), kVllmPath, ": ", why), kInterrupted);
}

std::vector<double> ServedRollout::known_scores(size_t server) const {
  std::vector<double> theirs;
  const std::string why =
      ask(server, vllm_score(name_, known_), std::max(config_.request_timeout, kTaking), [&](const HttpReply& reply) {
        try {
          theirs = vllm_scored(reply.body, known_);
        } catch (const std::exception& problem) {
          return str("a damaged reply (", printable(problem.what(), 120), ")");
        }
        return std::string();
      });
  if (why.empty()) return theirs;
  throw Error(ErrorKind::server, str(servers_[server].text(), ": scores of a known text: ", why), kInterrupted);
}

std::string ServedRollout::acknowledged_by(size_t server) const {
  return str(servers_[server].text(), ": acknowledged the weights of step ", weights_, ", but ");
}

void ServedRollout::check_known(size_t server, std::span<const double> theirs, std::span<const double> ours) {
  const double now = mean_difference(theirs, ours);
  difference_ = std::max(difference_, now);
  if (before_.size() == ours.size() && mean_difference(before_, ours) > kMoved) {
    const double before = mean_difference(theirs, before_);
    if (now > 2 * before) {
      throw Error(ErrorKind::server,
                  str(acknowledged_by(server),
                      "its log-probs of a known text are still those of the weights before (mean difference ", before,
                      " from them, ", now,
                      " from ours): they were not delivered; see what the server loads "
                      "on a weight sync"),
                  kInterrupted);
    }
  }
  if (now <= kWeightSyncTolerance) return;
  throw Error(ErrorKind::server,
              str(acknowledged_by(server), "its log-probs of a known text differ from ours by ", now,
                  " in the mean, more than ", kWeightSyncTolerance,
                  ": it computes with other weights or another "
                  "model"),
              kInterrupted);
}

void ServedRollout::check_sampled(size_t server, const Episode& sampled) const {
  std::vector<int32_t> ids = known_prompt_;
  ids.insert(ids.end(), sampled.token.begin(), sampled.token.end());
  const std::vector<double> said(sampled.logprob.begin(), sampled.logprob.end());
  const double apart = mean_difference(said, own_scores(ids, known_prompt_.size(), config_.temperature));
  if (apart <= kWeightSyncTolerance) return;
  throw Error(ErrorKind::server,
              str(acknowledged_by(server), "the log-probs of what it samples differ from ours by ", apart,
                  " in the mean, more than ", kWeightSyncTolerance, ": they are not of temperature ",
                  config_.temperature, " (vLLM: --logprobs-mode processed_logprobs), or of a cache of other weights"),
              kInterrupted);
}

void ServedRollout::on_all(const std::function<void(size_t server)>& work) const {
  std::vector<std::future<void>> working;
  for (size_t server = 0; server < servers_.size(); ++server) {
    working.push_back(std::async(std::launch::async, work, server));
  }
  std::exception_ptr failed;
  for (std::future<void>& one : working) {
    try {
      one.get();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  }
  if (failed) std::rethrow_exception(failed);
}

void ServedRollout::hand_over(const std::string& folder, int64_t weights, const std::string& model_files,
                              const MasterValues& values) {
  weights_ = weights;
  make_directories(folder);
  const std::string name = str("step-", weights_), target = path_join(folder, name);
  const std::string temporary = path_join(folder, ".tmp");
  for (const std::string& old : {temporary, target}) {
    if (exists(old)) remove_all(old);
  }
  make_directories(temporary);
  save_model(model_, temporary, model_files, values);
  sync_directory(temporary);
  rename_path(temporary, target);
  const std::string seen = std::filesystem::absolute(target).lexically_normal().string();
  on_all([&](size_t server) { load_weights(server, seen); });
  check_weights();
  for (const std::string& old : list_directory(folder)) {
    if (old != name) remove_all(path_join(folder, old));
  }
}

// Whether every server computes with the weights of now.
void ServedRollout::check_weights() {
  if (known_.empty()) {
    known_ = known_prompt_;
    const Episode sampled = sample_known(0);
    known_.insert(known_.end(), sampled.token.begin(), sampled.token.end());
  }
  const std::vector<double> ours = own_scores(known_, 1, 1.0);
  difference_ = 0;
  std::vector<std::vector<double>> known(servers_.size());
  on_all([&](size_t server) { known[server] = known_scores(server); });
  for (size_t server = 0; server < servers_.size(); ++server) check_known(server, known[server], ours);
  std::vector<Episode> sampled(servers_.size());
  on_all([&](size_t server) { sampled[server] = sample_known(server); });
  for (size_t server = 0; server < servers_.size(); ++server) check_sampled(server, sampled[server]);
  before_ = ours;
}

std::string vllm_sample(const std::string& model, const SamplerAsk& ask) {
  return json_text(Json{{"model", model},
                        {"prompt", list_of(ask.prompt)},
                        {"max_tokens", ask.max_tokens},
                        {"temperature", ask.temperature},
                        {"top_p", 1.0},
                        {"top_k", 0},
                        {"min_p", 0.0},
                        {"repetition_penalty", 1.0},
                        {"frequency_penalty", 0.0},
                        {"presence_penalty", 0.0},
                        {"stop_token_ids", list_of(ask.stop_ids)},
                        {"seed", ask.seed},
                        {"logprobs", 0},
                        {"return_token_ids", true}});
}

std::string vllm_score(const std::string& model, std::span<const int32_t> ids) {
  return json_text(
      Json{{"model", model}, {"prompt", list_of(ids)}, {"max_tokens", 1}, {"temperature", 0}, {"prompt_logprobs", 0}});
}

SamplerReply vllm_sampled(const std::string& body) {
  const Json parsed = parse_json(body, "reply");
  const Json& choice = parsed.at("choices").at(0);
  SamplerReply out;
  out.stopped = stopped_by(choice.at("finish_reason").get<std::string>());
  for (const Json& id : choice.at("token_ids")) out.token.push_back(id_of(id));
  for (const Json& value : choice.at("logprobs").at("token_logprobs")) out.logprob.push_back(number_of(value));
  return out;
}

std::vector<double> vllm_scored(const std::string& body, std::span<const int32_t> ids) {
  const Json parsed = parse_json(body, "reply");
  const Json& list = parsed.at("choices").at(0).at("prompt_logprobs");
  std::vector<double> out;
  for (size_t i = 1; i < ids.size(); ++i) out.push_back(number_of(list.at(i).at(str(ids[i])).at("logprob")));
  return out;
}

std::vector<VllmCall> vllm_hand_over(const std::string& directory, const std::string& version) {
  return {{"/pause?mode=wait", "{}"},
          {"/collective_rpc", json_text(Json{{"method", "reload_weights"}, {"kwargs", {{"weights_path", directory}}}})},
          {"/reset_prefix_cache", "{}"},
          {"/update_weight_version", json_text(Json{{"new_version", version}})},
          {"/resume", "{}"}};
}

std::string vllm_refuses(const std::string& body) {
  const std::optional<Json> said = json_of(body);
  if (!said || !said->is_object() || !said->contains("error")) return "";
  return said->at("error").is_string() ? said->at("error").get<std::string>() : json_text(said->at("error"));
}

}  // namespace ucas
