// One step's responses with everything that methods may read. Packed: token arrays hold the generated tokens of all
// responses one after another, the end token included, no padding, no prompts, no inserts of an environment.
// Legend: B responses, G responses of one prompt, N = sum of response lengths.
// Filled by train/collect (rollout with the sampler's H, C and l, verdicts, rewards) and train/signals/logprobs (old
// policy); read by methods and objective. Slot t holds quantities of the distribution that produced token t.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/verdict.h"

namespace ucas {

// Inserts: an environment's messages in the middle of a response. They are context of the model's later tokens; none of
// them has a log-prob, an advantage or a loss. Made by rollout/environment; read where a response is laid out as one
// sequence (train/signals) and by the writers of records.

struct Insert {
  int64_t at = 0;              // how many of the model's tokens precede it: 1 at least, and fewer than all
  std::vector<int32_t> token;  // 1 at least
  std::string text;            // the same as text
  bool operator==(const Insert&) const = default;
};

// All of their tokens, and those that precede the model's token number `at` (the first one is 0).
int64_t inserted_tokens(std::span<const Insert> inserts);
int64_t inserted_before(std::span<const Insert> inserts, int64_t at);
// The model's tokens and the inserts, in the order in which the model saw them.
std::vector<int32_t> with_inserts(std::span<const int32_t> own, std::span<const Insert> inserts);

struct Response {
  int64_t first = 0;          // index of its first token in the packed arrays
  int64_t length = 0;         // L_i, end token included; may be 0
  int64_t group = 0;          // index into Batch::groups
  int64_t sample = 0;         // its number within all samples of the prompt (key of its randomness)
  bool finished = true;       // ended by a stop token; false = cut at the length limit
  bool trained = true;        // false = masked (reward.truncated = "mask"): in its group's baseline, in nothing else
  bool scored = true;         // false: its reward is None, so its group goes without it
  std::vector<float> terms;   // r_ik, one for each of Batch::reward_terms, not weighted
  float score = 0;            // their weighted sum, before shaping
  float reward = 0;           // R_i: score + shaping - kl_penalty; what advantages are computed from
  float kl_penalty = 0;       // sum of its tokens' Batch::reward_kl
  float tail_confidence = 0;  // C of the distribution after the last token; 0 at the length limit
  Verdict verdict;
  std::vector<Insert> inserts = {};  // of an environment between its tokens, ascending; none is in the arrays

  int64_t length_with_inserts() const { return length + inserted_tokens(inserts); }
};

struct Group {                  // the responses o_1 .. o_G to one prompt
  int64_t problem = 0;          // index in the problem file
  int64_t first = 0;            // index of its first response
  int64_t count = 0;            // G
  std::vector<int32_t> prompt;  // token ids
};

struct RewardTerm {
  std::string name;   // "answer", "format"
  double weight = 1;  // w_k
};

struct Batch {
  std::vector<Group> groups;
  std::vector<Response> responses;  // [B], those of a group are contiguous
  uint64_t seed = 0;                // of the step: the key of a method's random numbers

  std::vector<RewardTerm> reward_terms;  // what the score is a sum of; empty in what older runs stored
  std::vector<int32_t> stop_ids;         // the ids that end a response

  std::vector<int32_t> token;  // [N]
  std::vector<float>
      rollout_logprob;  // [N] as the sampler reported it: of the distribution sampled from (after top-k, top-p, min-p)
  std::vector<float> rollout_whole_logprob;  // [N] of the whole vocabulary; empty where nothing is cut: then the same
  std::vector<float> old_logprob;            // [N] trainer policy before the step's first update
  std::vector<float> reward_kl;   // [N] beta KL(old, ref), taken off the token's reward; empty without such a term
  std::vector<float> entropy;     // [N] H of the old policy
  std::vector<float> confidence;  // [N] C = LSE(z) - mean_v z of the old policy, z = logits / temperature
  std::vector<float> logit;       // [N] raw logit of the chosen token, before the temperature
  std::map<std::string, std::vector<float>, std::less<>> signals;  // [N] each: what a method needs besides, by its key
  bool has_tails = true;                                           // whether Response::tail_confidence is known

  // One of the arrays above or of `signals`, by its key; empty where there is none, made by the second.
  const std::vector<float>& signal(std::string_view key) const;
  std::vector<float>& signal(std::string_view key);
  // All of them that are not empty, with their keys.
  std::vector<std::pair<std::string_view, std::span<const float>>> all_signals() const;

  // The sampler's log-prob under the distribution that the trainer's models are evaluated with: the whole vocabulary.
  const std::vector<float>& sampler_logprob() const {
    return rollout_whole_logprob.empty() ? rollout_logprob : rollout_whole_logprob;
  }
  int64_t token_count() const { return static_cast<int64_t>(token.size()); }
  std::span<const Response> of(const Group& group) const {
    return std::span(responses).subspan(static_cast<size_t>(group.first), static_cast<size_t>(group.count));
  }
  // The values of the tokens that are trained: of responses that are not masked, in order. Whatever is taken over the
  // tokens of a step (mean, deviation, range, share) is taken over these.
  template <class T>
  std::vector<T> trained(std::span<const T> values) const {
    std::vector<T> out;
    if (values.empty()) return out;
    out.reserve(values.size());
    for (const Response& o : responses) {
      if (!o.trained) continue;
      const auto its = values.subspan(static_cast<size_t>(o.first), static_cast<size_t>(o.length));
      out.insert(out.end(), its.begin(), its.end());
    }
    return out;
  }
  template <class T>
  std::vector<T> trained(const std::vector<T>& values) const {
    return trained(std::span<const T>(values));
  }
  template <class T>
  static std::span<T> tokens(std::vector<T>& values, const Response& response) {
    return std::span(values).subspan(static_cast<size_t>(response.first), static_cast<size_t>(response.length));
  }
  template <class T>
  static std::span<const T> tokens(const std::vector<T>& values, const Response& response) {
    return std::span(values).subspan(static_cast<size_t>(response.first), static_cast<size_t>(response.length));
  }
};

}  // namespace ucas
