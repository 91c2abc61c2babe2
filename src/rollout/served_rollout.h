// Sampling by servers of vLLM: prompts are sent as token ids, each response with a seed of its own, and received as
// token ids with log-probs; weights are synced through a directory that the servers see, too. An acknowledged sync is
// not trusted: after each one the server's log-probs of a known text must be ours, and closer to ours than to those of
// the weights before. Borrows model and tokenizer files; the directory is inside the run's. Threads: one caller;
// requests have their own, and each server its own during a sync.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "http/ask_many.h"
#include "model/model.h"
#include "model/stored.h"
#include "rollout/config.h"
#include "rollout/rollouter.h"

namespace ucas {

// Requests to vLLM (0.32) and its replies, as it documents them: its OpenAI-compatible interface with what it adds,
// token ids in and out and log-probs of the prompt; weights by a directory that both sides see, which its workers' own
// reload_weights takes, called through the interface for developers. Texts alone; who sends them is
// rollout/served_rollout. Threads: any; nothing is kept.

struct SamplerAsk {
  std::span<const int32_t> prompt;
  std::span<const int32_t> stop_ids;
  int64_t max_tokens = 1;
  double temperature = 1;  // 0 = greedy
  uint32_t seed = 0;
};

// The content of a reply. Whether it can be true is checked by the caller.
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

// The calls that sync weights, in order. After each the server has returned 200; vllm_refuses() finds the reason in a
// body that says otherwise, or "".
struct VllmCall {
  std::string path, body;
};
std::vector<VllmCall> vllm_hand_over(const std::string& directory, const std::string& version);
std::string vllm_refuses(const std::string& body);

class ServedRollout final : public Rollouter {
 public:
  ServedRollout(const TrainRolloutConfig& config, Model& model, std::vector<int32_t> known_prompt,
                std::vector<int32_t> stop_ids, int64_t token_budget);

  // Error(ErrorKind::server, exit 75) where responses are missing after all tries.
  std::vector<Episode> run(const RolloutRequest& request) override;

  // Writes the model's weights of now to FOLDER/step-N and has every server take them, all at once, and removes those
  // before. Error ("server", exit 75) where one does not answer, refuses, or computes with others. `values` as
  // save_model() has it. Of several ranks rank 0 alone calls.
  void hand_over(const std::string& folder, int64_t weights, const std::string& model_files,
                 const MasterValues& values = nullptr);

  int64_t tried_again() const { return tried_again_; }  // requests so far
  double known_difference() const {
    return difference_;
  }  // mean |theirs - ours| of the known text, the largest server's

 private:
  HttpReply call(size_t server, const std::string& path, const std::string& body, double timeout) const;  // seconds
  std::string read(const SamplerAsk& ask, const HttpReply& reply, Episode& into) const;
  void load_weights(size_t server, const std::string& directory) const;
  void check_weights();
  std::vector<double> known_scores(size_t server) const;  // its log-probs of the known text
  void check_known(size_t server, std::span<const double> theirs, std::span<const double> ours);
  void check_sampled(size_t server, const Episode& sampled) const;
  std::string acknowledged_by(size_t server) const;
  // `work` for every server, all at once; throws what the first of them threw.
  void on_all(const std::function<void(size_t server)>& work) const;
  std::string ask(size_t server, const std::string& body, double timeout,
                  const std::function<std::string(const HttpReply&)>& take) const;
  Episode sample_known(size_t server) const;
  std::vector<double> own_scores(std::span<const int32_t> ids, size_t prompt, double temperature) const;

  const TrainRolloutConfig config_;
  Model& model_;
  const std::vector<Url> servers_;
  const std::vector<int32_t> known_prompt_, stop_ids_;
  const int64_t token_budget_;
  std::string name_;            // of the model there
  std::vector<int32_t> known_;  // the known text: the prompt and a response to it
  std::vector<double> before_;  // our log-probs of it at the last weight sync
  int64_t weights_ = 0;
  int64_t tried_again_ = 0;
  double difference_ = 0;
};

}  // namespace ucas
