#include "support/engine/fake_server.h"

#include <nlohmann/json.hpp>

#include "base/str.h"
#include "rollout/engine.h"
#include "train/signals/logprobs.h"

namespace ucas::testing {

FakeServer::FakeServer(const std::string& checkpoint) : model_(load_model(checkpoint, at::kCPU)), server_(8) {
  server_.post("/generate", [this](const std::string& body, const HttpHeaders&) { return generate(body); });
  server_.post("/update_weights_from_disk",
               [this](const std::string& body, const HttpHeaders&) { return take_weights(body); });
  server_.get("/get_server_info", [this](const std::string&, const HttpHeaders&) -> HttpAnswer {
    if (ranks == 0) return {.status = 404, .body = "{}"};
    return {.body = Json{{"tp_size", ranks.load()}}.dump()};
  });
  port_ = server_.bind("127.0.0.1", 0);
  thread_ = std::thread([this] { server_.run(); });
}

FakeServer::~FakeServer() {
  server_.stop();
  thread_.join();
}

std::vector<std::string> FakeServer::versions() const {
  const std::lock_guard lock(mutex_);
  return versions_;
}

HttpAnswer FakeServer::generate(const std::string& body) {
  const Json asked = Json::parse(body);
  const std::lock_guard lock(mutex_);
  if (asked.contains("logprob_start_len")) return {.body = score(asked).dump()};
  if (refused > 0 && refused-- > 0) return {.status = 500, .body = "{\"error\": \"told to refuse\"}"};
  Json reply = sample(asked);
  if (damaged > 0 && damaged-- > 0) return {.body = reply.dump().substr(0, 20)};
  if (outside > 0 && outside-- > 0) {
    reply["meta_info"]["output_token_logprobs"][0][1] = model_->config().vocab_size;
  }
  return {.body = reply.dump()};
}

Json FakeServer::sample(const Json& asked) {
  ++sampled_;
  const auto prompt = asked.at("input_ids").get<std::vector<int32_t>>();
  const Json& settings = asked.at("sampling_params");
  const std::vector<PromptJob> jobs = {{.prompt = prompt, .greedy = settings.at("temperature") == 0}};
  RolloutRequest request;
  request.jobs = jobs;
  request.seed = settings.at("sampling_seed").get<uint64_t>();
  request.limits.stop_ids = settings.at("stop_token_ids").get<std::vector<int32_t>>();
  request.sampling.max_tokens = settings.at("max_new_tokens").get<int64_t>();
  const Episode response = make_engine(*model_)->run(request).at(0);
  Json reply;
  Json& meta = reply["meta_info"];
  meta["finish_reason"]["type"] = response.finished ? "stop" : "length";
  for (size_t t = 0; t < response.token.size(); ++t) {
    meta["output_token_logprobs"].push_back(Json::array({response.logprob[t], response.token[t], nullptr}));
  }
  const std::string version = !told_version.empty() ? told_version : versions_.empty() ? "" : versions_.back();
  if (!version.empty()) meta["weight_version"] = version;
  return reply;
}

Json FakeServer::score(const Json& asked) {
  const auto ids = asked.at("input_ids").get<std::vector<int32_t>>();
  Batch batch;
  batch.groups.push_back({.first = 0, .count = 1, .prompt = {ids.front()}});
  batch.token.assign(ids.begin() + 1, ids.end());
  batch.responses.push_back({.length = static_cast<int64_t>(batch.token.size())});
  const std::vector<float> logprob = compute_logprobs(*model_, batch, 1, 4096);
  Json reply;
  Json& list = reply["meta_info"]["input_token_logprobs"];
  list.push_back(Json::array({nullptr, ids.front(), nullptr}));
  for (size_t i = 0; i < logprob.size(); ++i) list.push_back(Json::array({logprob[i], ids[i + 1], nullptr}));
  return reply;
}

HttpAnswer FakeServer::take_weights(const std::string& body) {
  const Json asked = Json::parse(body);
  if (on_weights) on_weights();
  const std::lock_guard lock(mutex_);
  if (!keeps_weights) model_ = load_model(asked.at("model_path").get<std::string>(), at::kCPU);
  versions_.push_back(asked.at("weight_version").get<std::string>());
  return {.body = "{\"success\": true, \"message\": \"\"}"};
}

}  // namespace ucas::testing
