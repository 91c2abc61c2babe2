// What an update hands to a loss and what it gets back: plain arrays over the tokens of some sequences, whole ones or
// parts of them (PolicyLoss::whole_responses), no autograd. Fed by train/update/gradients; objective/aggregate makes
// the loss of the mini-batch of it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/signal.h"
#include "objective/config.h"

namespace ucas {

struct Sequence {
  int64_t first = 0, length = 0;  // in the arrays of the LossInput
  int64_t response = 0;           // index in Batch::responses
  int64_t group = 0;              // index in Batch::groups: its prompt
};

// All spans are [n], n the tokens of these sequences.
struct LossInput {
  std::span<const Sequence> sequences;
  std::span<const float> logprob;                                  // lp, current policy
  std::span<const float> entropy;                                  // H, current policy
  std::span<const float> confidence;                               // C, current policy
  std::span<const float> old_logprob, rollout_logprob, advantage;  // the sampler's under the whole vocabulary
  std::span<const uint8_t> mark = {};  // by select(); empty where the method selects nothing
  uint64_t seed = 0;                   // for a loss that samples: Rng(seed, stream); differs by step and mini-batch
  const ObjectiveConfig* objective = nullptr;
  bool only_marked = false;  // tokens of mark 0 are neither in the sum nor in the denominator
  // Needs::current of the current policy, and what else the batch has: [n] each, by key. A check fails where none is.
  std::vector<std::pair<std::string_view, std::span<const float>>> signals = {};
  std::span<const float> signal(std::string_view key) const;
};

// Per token, before aggregation: the loss and its derivatives with respect to lp, H, C and those of Needs::current that
// have derivatives. `clipped`: 1 upper/lower clip, 2 dual clip.
// token_loss receives all of them as 0 and writes what differs.
struct LossOutput {
  std::span<float> loss, d_logprob, d_entropy, d_confidence;
  std::span<uint8_t> clipped;
  bool absolute_drift = false;  // actor/ppo_kl is the mean of |lp - old|, not of old - lp
  std::vector<std::pair<std::string_view, std::span<float>>> d_signals = {};
  std::span<float> d_signal(std::string_view key) const;
  std::vector<std::span<float>> numbers() const;  // all but `clipped`
};

// Owns the arrays that a LossOutput points into.
class LossBuffer {
 public:
  LossOutput view(int64_t tokens, std::span<const TokenSignal> current = {});  // valid until the next call

 private:
  std::vector<float> loss_, d_logprob_, d_entropy_, d_confidence_;
  std::map<std::string, std::vector<float>, std::less<>> d_signals_;
  std::vector<uint8_t> clipped_;
};

// Among which tokens a loss selects. At `step` scope select() runs once, on the old policy's signals; at the others
// before every update, on the current ones (one more forward pass). `micro` depends on update.micro_batch_tokens.
enum class Scope { micro, mini, step };

// The part of a method that an update calls.
class PolicyLoss {
 public:
  virtual ~PolicyLoss() = default;
  // Per token. Default: the clipped ratio (objective/loss/clipped_ratio.h).
  virtual void token_loss(const LossInput& in, LossOutput& out) const;
  // Whether it reads a token's neighbours, as a ratio of sequences does. Otherwise a response may come in parts, so
  // that the logits of a long one need not all be held, nor computed twice.
  virtual bool whole_responses() const { return false; }
  // Only where the loss depends on a choice among the tokens of a scope (Needs::selection): mark[t] is 0 as received,
  // or what the loss makes of it; token_loss then reads in.mark.
  virtual void select(const LossInput& /*in*/, std::span<uint8_t> /*mark*/) const {}
};

}  // namespace ucas
