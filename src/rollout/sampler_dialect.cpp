#include "rollout/sampler_dialect.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"
#include "http/ask_many.h"

namespace ucas {

namespace {

std::vector<int32_t> list_of(std::span<const int32_t> ids) { return {ids.begin(), ids.end()}; }

int32_t id_of(const Json& id) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
    throw std::runtime_error(str("a token id that is ", id.dump().substr(0, 40)));
  }
  return id.get<int32_t>();
}

double number_of(const Json& value) {
  if (!value.is_number()) throw std::runtime_error(str("a log-prob that is ", value.dump().substr(0, 40)));
  return value.get<double>();
}

bool stopped_by(const std::string& reason) {
  if (reason != "stop" && reason != "length") throw std::runtime_error(str("it ended by ", printable(reason, 40)));
  return reason == "stop";
}

// SGLang's own interface. Its log-probs are those of the temperature asked for, before top-p and top-k.
class Sglang final : public SamplerDialect {
 public:
  const char* name() const override { return "SGLang"; }
  std::string path() const override { return "/generate"; }

  std::string sample(const SamplerAsk& ask) const override {
    const Json settings = {{"max_new_tokens", ask.max_tokens},
                           {"temperature", ask.temperature},
                           {"top_p", 1.0},
                           {"top_k", -1},
                           {"min_p", 0.0},
                           {"repetition_penalty", 1.0},
                           {"frequency_penalty", 0.0},
                           {"presence_penalty", 0.0},
                           {"stop_token_ids", list_of(ask.stop_ids)},
                           {"sampling_seed", ask.seed},
                           {"skip_special_tokens", false}};
    return json_text(Json{{"input_ids", list_of(ask.prompt)}, {"sampling_params", settings}, {"return_logprob", true}});
  }

  std::string score(std::span<const int32_t> ids) const override {
    return json_text(Json{{"input_ids", list_of(ids)},
                          {"sampling_params", {{"max_new_tokens", 1}, {"temperature", 0}}},
                          {"return_logprob", true},
                          {"logprob_start_len", 0}});
  }

  SamplerReply sampled(const std::string& body) const override {
    const Json meta = parse_json(body, "reply").at("meta_info");
    SamplerReply out;
    out.stopped = stopped_by(meta.at("finish_reason").at("type").get<std::string>());
    for (const Json& entry : meta.at("output_token_logprobs")) {
      out.logprob.push_back(number_of(entry.at(0)));
      out.token.push_back(id_of(entry.at(1)));
    }
    if (const auto version = meta.find("weight_version"); version != meta.end() && version->is_string()) {
      out.version = version->get<std::string>();
    }
    return out;
  }

  std::vector<double> scored(const std::string& body, std::span<const int32_t> ids) const override {
    const Json parsed = parse_json(body, "reply");
    const Json& list = parsed.at("meta_info").at("input_token_logprobs");
    std::vector<double> out;
    for (size_t i = 1; i < ids.size(); ++i) {
      if (id_of(list.at(i).at(1)) != ids[i]) throw std::runtime_error("log-probs of other tokens than asked for");
      out.push_back(number_of(list.at(i).at(0)));
    }
    return out;
  }

  std::vector<Call> hand_over(const std::string& directory, const std::string& version) const override {
    return {{"/update_weights_from_disk",
             json_text(Json{{"model_path", directory}, {"weight_version", version}, {"flush_cache", true}})}};
  }

  std::string refuses(const std::string& body) const override {
    const std::optional<Json> said = json_of(body);
    if (!said || !said->is_object()) return "a reply that is no object";
    if (said->value("success", false)) return "";
    const auto message = said->find("message");
    return message != said->end() && message->is_string() ? message->get<std::string>() : "success is not true";
  }

  const char* needs() const override { return "SGLang 0.5 has it"; }

  std::vector<std::string> info_paths() const override { return {"/server_info", "/get_server_info"}; }

  // A worker's rank is the first one of its server and its number among those that share tensors: SGLang counts no
  // others.
  int64_t ranks_in(const std::string& info) const override {
    const Json said = parse_json(info, "reply");
    for (const char* other : {"pp_size", "dp_size"}) {
      if (const int64_t n = said.value(other, int64_t{1}); n != 1) {
        throw std::runtime_error(str(other, " = ", n, ": only servers of tensor parallel workers join a group"));
      }
    }
    const int64_t ranks = said.at("tp_size").get<int64_t>();
    if (ranks < 1 || ranks > 1024) throw std::runtime_error(str("tp_size = ", ranks));
    return ranks;
  }

  Call join_group(const Group& group) const override {
    return {"/init_weights_update_group", json_text(Json{{"master_address", group.address},
                                                         {"master_port", group.port},
                                                         {"rank_offset", group.first_rank},
                                                         {"world_size", group.size},
                                                         {"group_name", group.name},
                                                         {"backend", group.backend}})};
  }

  Call receive(const Group& group, const Bucket& bucket) const override {
    Json body{{"names", bucket.names},
              {"dtypes", std::vector<std::string>(bucket.names.size(), bucket.dtype)},
              {"shapes", bucket.shapes},
              {"group_name", group.name},
              {"flush_cache", !bucket.version.empty()}};
    if (!bucket.version.empty()) body["weight_version"] = bucket.version;
    return {"/update_weights_from_distributed", json_text(body)};
  }

  Call leave_group(const Group& group) const override {
    return {"/destroy_weights_update_group", json_text(Json{{"group_name", group.name}})};
  }
};

// vLLM's OpenAI-compatible interface with what it adds: token ids in and out, log-probs of the prompt. Weights of a
// directory are taken by its workers' own reload_weights, called through the interface for developers; nothing else of
// vLLM reads them from a disk.
class Vllm final : public SamplerDialect {
 public:
  explicit Vllm(std::string model) : model_(std::move(model)) {}
  const char* name() const override { return "vLLM"; }
  std::string path() const override { return "/v1/completions"; }

  std::string sample(const SamplerAsk& ask) const override {
    return json_text(Json{{"model", model_},
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

  std::string score(std::span<const int32_t> ids) const override {
    return json_text(Json{
        {"model", model_}, {"prompt", list_of(ids)}, {"max_tokens", 1}, {"temperature", 0}, {"prompt_logprobs", 0}});
  }

  SamplerReply sampled(const std::string& body) const override {
    const Json parsed = parse_json(body, "reply");
    const Json& choice = parsed.at("choices").at(0);
    SamplerReply out;
    out.stopped = stopped_by(choice.at("finish_reason").get<std::string>());
    for (const Json& id : choice.at("token_ids")) out.token.push_back(id_of(id));
    for (const Json& value : choice.at("logprobs").at("token_logprobs")) out.logprob.push_back(number_of(value));
    return out;
  }

  std::vector<double> scored(const std::string& body, std::span<const int32_t> ids) const override {
    const Json parsed = parse_json(body, "reply");
    const Json& list = parsed.at("choices").at(0).at("prompt_logprobs");
    std::vector<double> out;
    for (size_t i = 1; i < ids.size(); ++i) out.push_back(number_of(list.at(i).at(str(ids[i])).at("logprob")));
    return out;
  }

  std::vector<Call> hand_over(const std::string& directory, const std::string& version) const override {
    return {
        {"/pause?mode=wait", "{}"},
        {"/collective_rpc", json_text(Json{{"method", "reload_weights"}, {"kwargs", {{"weights_path", directory}}}})},
        {"/reset_prefix_cache", "{}"},
        {"/update_weight_version", json_text(Json{{"new_version", version}})},
        {"/resume", "{}"}};
  }

  std::string refuses(const std::string& body) const override {
    const std::optional<Json> said = json_of(body);
    if (!said || !said->is_object() || !said->contains("error")) return "";
    return said->at("error").is_string() ? said->at("error").get<std::string>() : json_text(said->at("error"));
  }

  const char* needs() const override { return "start vLLM with VLLM_SERVER_DEV_MODE=1"; }

 private:
  const std::string model_;
};

}  // namespace

namespace {

[[noreturn]] void no_group() { check_failed("rollout.weight_sync", "its servers join no group", __FILE__, __LINE__); }

}  // namespace

std::vector<std::string> SamplerDialect::info_paths() const { no_group(); }
int64_t SamplerDialect::ranks_in(const std::string& /*info*/) const { no_group(); }
SamplerDialect::Call SamplerDialect::join_group(const Group& /*group*/) const { no_group(); }
SamplerDialect::Call SamplerDialect::receive(const Group& /*group*/, const Bucket& /*bucket*/) const { no_group(); }
SamplerDialect::Call SamplerDialect::leave_group(const Group& /*group*/) const { no_group(); }

std::unique_ptr<SamplerDialect> make_dialect(SampledBy sampler, const std::string& model) {
  UCAS_CHECK(sampler != SampledBy::native, "expected a rollout backend with servers");
  if (sampler == SampledBy::sglang) return std::make_unique<Sglang>();
  return std::make_unique<Vllm>(model);
}

}  // namespace ucas
