#include "support/engine/fake_server.h"

#include <nlohmann/json.hpp>

#include "base/str.h"
#include "http/library.h"
#include "rollout/rollouter.h"
#include "train/signals/logprobs.h"

namespace ucas::testing {

FakeServer::FakeServer(const std::string& checkpoint)
    : model_(load_model(checkpoint, at::kCPU)), server_(std::make_unique<httplib::Server>()) {
  const auto post = [this](const char* path, std::function<Answer(const std::string&)> answer) {
    server_->Post(path, [answer = std::move(answer)](const httplib::Request& asked, httplib::Response& reply) {
      const auto [status, body] = answer(asked.body);
      reply.status = status;
      reply.set_content(body, "application/json");
    });
  };
  for (const char* path : {"/pause", "/reset_prefix_cache", "/resume"})
    post(path, [](const std::string&) -> Answer { return {200, "{}"}; });
  post("/v1/completions", [this](const std::string& body) { return complete(body); });
  post("/collective_rpc", [this](const std::string& body) { return take_weights(body); });
  post("/update_weight_version", [this](const std::string& body) -> Answer {
    const std::lock_guard lock(mutex_);
    versions_.push_back(Json::parse(body).at("new_version").get<std::string>());
    return {200, "{}"};
  });
  server_->Get("/v1/models", [](const httplib::Request&, httplib::Response& reply) {
    reply.set_content(R"({"data": [{"id": "tiny"}]})", "application/json");
  });
  server_->set_keep_alive_max_count(1);  // else stop() waits for connections without a request
  port_ = server_->bind_to_any_port("127.0.0.1");
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  while (!server_->is_running()) std::this_thread::yield();
}

FakeServer::~FakeServer() {
  server_->stop();
  thread_.join();
}

std::vector<std::string> FakeServer::versions() const {
  const std::lock_guard lock(mutex_);
  return versions_;
}

FakeServer::Answer FakeServer::complete(const std::string& body) {
  const Json asked = Json::parse(body);
  const std::lock_guard lock(mutex_);
  if (asked.contains("prompt_logprobs")) return {200, score(asked).dump()};
  if (refused > 0 && refused-- > 0) return {500, R"({"error": "told to refuse"})"};
  Json reply = sample(asked);
  if (damaged > 0 && damaged-- > 0) return {200, reply.dump().substr(0, 20)};
  if (outside > 0 && outside-- > 0) {
    reply["choices"][0]["token_ids"][0] = model_->config().vocab_size;
  }
  return {200, reply.dump()};
}

Json FakeServer::sample(const Json& asked) {
  ++sampled_;
  const auto prompt = asked.at("prompt").get<std::vector<int32_t>>();
  const std::vector<PromptJob> jobs = {{.prompt = prompt, .greedy = asked.at("temperature") == 0}};
  RolloutRequest request;
  request.jobs = jobs;
  request.seed = asked.at("seed").get<uint64_t>();
  request.limits.stop_ids = asked.at("stop_token_ids").get<std::vector<int32_t>>();
  request.sampling.max_tokens = asked.at("max_tokens").get<int64_t>();
  const Episode response = make_engine(*model_)->run(request).at(0);
  const Json choice = {{"finish_reason", response.finished ? "stop" : "length"},
                       {"token_ids", response.token},
                       {"logprobs", {{"token_logprobs", response.logprob}}}};
  return {{"choices", Json::array({choice})}};
}

Json FakeServer::score(const Json& asked) {
  const auto ids = asked.at("prompt").get<std::vector<int32_t>>();
  Batch batch;
  batch.groups.push_back({.first = 0, .count = 1, .prompt = {ids.front()}});
  batch.token.assign(ids.begin() + 1, ids.end());
  batch.responses.push_back({.length = static_cast<int64_t>(batch.token.size())});
  const std::vector<float> logprob = compute_logprobs(*model_, batch, 1, 4096);
  Json list = Json::array({nullptr});
  for (size_t i = 0; i < logprob.size(); ++i) {
    list.push_back({{std::to_string(ids[i + 1]), {{"logprob", logprob[i]}}}});
  }
  return {{"choices", Json::array({{{"prompt_logprobs", list}}})}};
}

FakeServer::Answer FakeServer::take_weights(const std::string& body) {
  const Json asked = Json::parse(body);
  if (on_weights) on_weights();
  const std::lock_guard lock(mutex_);
  if (!keeps_weights) model_ = load_model(asked.at("kwargs").at("weights_path").get<std::string>(), at::kCPU);
  return {200, R"({"results": [null]})"};
}

}  // namespace ucas::testing
