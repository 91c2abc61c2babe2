// What vLLM (0.32) is asked and answers, as it documents it: its OpenAI-compatible interface with what it adds, token
// ids in and out and log-probs of the prompt; weights by a directory that both sides see, which its workers' own
// reload_weights takes, called through the interface for developers. Texts alone; who sends them is
// rollout/served_rollout. Threads: any; nothing is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ucas {

struct SamplerAsk {
  std::span<const int32_t> prompt;
  std::span<const int32_t> stop_ids;
  int64_t max_tokens = 1;
  double temperature = 1;  // 0 = greedy
  uint32_t seed = 0;
};

// What a reply says. Whether it can be true is checked by who asked.
struct SamplerReply {
  std::vector<int32_t> token;  // the stop token included
  std::vector<double> logprob;
  bool stopped = false;  // by a stop token; false: at the limit
};

constexpr const char* kVllmPath = "/v1/completions";  // of both questions
// `model`: the name that the server knows it by.
std::string vllm_sample(const std::string& model, const SamplerAsk& ask);
std::string vllm_score(const std::string& model, std::span<const int32_t> ids);
// Throw where a body is not what the interface says.
SamplerReply vllm_sampled(const std::string& body);
// Log-probs of all ids but the first, at temperature 1.
std::vector<double> vllm_scored(const std::string& body, std::span<const int32_t> ids);

// The calls that hand weights over, in order. After each the server has said 200; vllm_refuses() finds what a body that
// came with it says against that, or "".
struct VllmCall {
  std::string path, body;
};
std::vector<VllmCall> vllm_hand_over(const std::string& directory, const std::string& version);
std::string vllm_refuses(const std::string& body);

}  // namespace ucas
