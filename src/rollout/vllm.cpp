#include "rollout/vllm.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/str.h"
#include "base/text/json.h"
#include "http/ask_many.h"

namespace ucas {

namespace {

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
