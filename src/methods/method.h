// What differs between RL methods: which signals they need, how rewards become advantages, and, for a few, the loss.
// A method is one file methods/NAME.cpp and one row of methods/registry.h. Plain loops, no autograd, no LibTorch.
// Fed by train/collect + train/logprobs (a full Batch); feeds train/gradients. The trainer never compares method names.
// Legend (core/batch.h): B responses, G per prompt, N packed tokens.
// Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/batch.h"
#include "core/optimizer_config.h"

namespace ucas {

// How the per-token losses of a mini-batch become one number (methods/aggregate.h has the formulas). The two `norm`
// divide by a constant length: verl's Dr.GRPO does not divide by the number of responses, Oat's divides by all of them.
enum class Aggregation {
  token_mean,
  seq_mean_token_mean,
  seq_mean_token_sum,
  seq_mean_token_sum_norm,
  row_mean_token_sum_norm,
  group_token_mean
};

// Estimators of KL(pi || pi_ref) per token (methods/kl.h).
enum class KlEstimator { k1, abs, k2, k3, k3_plus };

// What is done about a sampler whose probabilities differ from the trainer's (methods/mismatch.h).
enum class Tis { off, token, sequence, sequence_mask };
enum class SamplerLaw { whole, drawn };  // which of the sampler's two log-probs they take, where it truncates
enum class Reject { off, token_ratio, sequence_ratio, geometric_ratio, token_k3, sequence_k3 };

// How micro-batches add up: exactly, or as verl's classic actor weighs them (methods/aggregate.h).
enum class Accumulation { exact, verl_legacy };

// Dynamic sampling: what a prompt's responses are compared by, and what happens until enough prompts passed
// (methods/collect_rules.h).
enum class KeepMetric { acc, score, reward };
enum class KeepOrder { refill, prefer };

// The loss of Eq. 1, 2, 4, 11. A method sets its own defaults; the config file overrides them.
struct ObjectiveConfig {
  double clip_low = 0.2;   // eps_low
  double clip_high = 0.2;  // eps_high
  double dual_clip = 3.0;  // c > 1; 0 = off
  Aggregation aggregation = Aggregation::token_mean;
  double norm_length = 0;    // constant of the ..._norm aggregations; 0 = the response limit
  double entropy_coeff = 0;  // entropy bonus
  double kl_coeff = 0;       // KL loss against the frozen reference
  KlEstimator kl_estimator = KlEstimator::k3;
  bool keep_mixed_groups = false;             // DAPO dynamic sampling: train only on groups with 0 < correct < G
  KeepMetric keep_metric = KeepMetric::acc;   // what must differ in such a group: verdict, score, or shaped reward
  double keep_low = 0, keep_high = 1;         // PRIME: train only on prompts with a mean accuracy within, ends included
  bool keep_untruncated = false;              // PRIME in verl: and without a response at the length limit
  KeepOrder keep_order = KeepOrder::refill;   // until enough pass, or those that pass first and others after them
  Tis tis = Tis::off;                         // truncated importance sampling: weights from old and rollout log-probs
  double tis_cap = 2;                         // C, where a weight is cut, or its sequence left out (sequence_mask)
  Reject reject = Reject::off;                // leaves tokens or responses out, from the same log-probs
  double reject_low = 0.5;                    // a ratio below is rejected; no meaning for k3
  double reject_high = 2;                     // a ratio or k3 above is rejected
  SamplerLaw correct_by = SamplerLaw::whole;  // what TIS and rejection compare old with, under top-p or top-k
  Accumulation accumulation = Accumulation::exact;
  void fields(Fields& f);
  void validate() const;  // cross-field errors
};

// A critic beside the policy: the policy's initial body with a scalar head, trained on returns().
struct CriticConfig {
  OptimizerConfig optimizer;
  int64_t updates = 1;      // optimizer updates per rollout step; each sees its share of the step's responses
  double value_clip = 0.5;  // of V - V_old, in the clipped value loss
  std::string model;        // checkpoint to start from; "" = the policy's
  void fields(Fields& f);
};

// An implicit process reward model (PRIME): a second trained language model phi and its frozen start, read through
// q_it = lp_phi - lp_ref at temperature 1.
enum class PrmOrder { before, after };  // train phi on the batch before or after it scores the batch
struct PrmConfig {
  OptimizerConfig optimizer;
  PrmOrder order = PrmOrder::before;
  double beta = 0.05;  // P(right) = sigmoid(beta sum_t q_it)
  std::string model;   // checkpoint to start from; "" = the policy's
  void fields(Fields& f);
};

// What the trainer must provide. Only these are computed and held. May depend on the method's options.
struct Needs {
  bool labels = true;                  // right answers; false: problems without one are welcome
  bool answer_classes = false;         // Verdict::answer_class within each group
  bool reference = false;              // Batch::ref_logprob
  bool tail_confidence = false;        // Response::tail_confidence
  std::optional<CriticConfig> critic;  // Batch::value
  std::optional<PrmConfig> prm;        // Batch::prm_logratio
};

// What an update sees of some whole sequences. All spans are [n]; `first`/`length` of sequences index into them.
struct Sequence {
  int64_t first = 0, length = 0;
  int64_t response = 0;  // index in Batch::responses
  int64_t group = 0;     // index in Batch::groups: its prompt
};
struct LossInput {
  std::span<const Sequence> sequences;
  std::span<const float> logprob;                                  // lp, current policy
  std::span<const float> entropy;                                  // H, current policy
  std::span<const float> confidence;                               // C, current policy
  std::span<const float> old_logprob, rollout_logprob, advantage;  // the sampler's as objective.correct_by asks
  std::span<const float> ref_logprob;                              // frozen reference; empty unless needed
  std::span<const uint8_t> mark;  // what select() said; empty where the method selects nothing
  uint64_t seed = 0;              // for a method that draws: Rng(seed, stream); differs by step and mini-batch
  const ObjectiveConfig* objective = nullptr;
  std::span<const uint8_t> rejected = {};  // 1: left out by objective.reject; empty where none is. Filled for methods
};
// Per token, before aggregation: the loss and its derivatives with respect to lp, H and C. `clipped`: 1 upper/lower
// clip, 2 dual clip. token_loss receives all of them as 0 and writes what differs.
struct LossOutput {
  std::span<float> loss, d_logprob, d_entropy, d_confidence;
  std::span<uint8_t> clipped;
};

// Among which tokens select() chooses. At `step` scope it runs once, on the old policy's signals; at the others before
// every update, on the current ones (one more forward pass). `micro` depends on update.micro_batch_tokens.
enum class SelectionScope { none, micro, mini, step };

// For people: one line of `ucas explain`.
struct Equation {
  std::string where;    // "Eq. 8"
  std::string formula;  // with this run's values: "W = exp(-0.25 C_hat) if A > 0, exp(0.25 C_hat) if A < 0"
  std::string words;    // "a confident right answer counts less, a confident wrong one is punished more"
};

// What a method records for the report, per token or per response, under the paper's symbols ("W", "C_hat", "A_mod",
// "l_hat"). Recorded, not recomputed.
struct Trace {
  struct Row {
    std::string name;
    bool per_token = false;  // values are [N] if so, else [B]
    std::vector<float> values;
  };
  std::vector<Row> rows;
  std::vector<std::pair<std::string, double>> metrics;  // logged as they are: "ucas/weight/std" ...
};

class Method {
 public:
  virtual ~Method() = default;
  virtual std::string title() const = 0;  // "UCAS", for people
  virtual std::string paper() const = 0;  // citation
  // Named sets of settings, where articles and released code differ; the first is the default. use_preset() is called
  // at most once, before objective_defaults() and before any single option is set.
  virtual std::vector<std::string> presets() const { return {"paper"}; }
  virtual void use_preset(const std::string& /*name*/) {}
  virtual ObjectiveConfig objective_defaults() const { return {}; }
  virtual void fields(Fields&) {}   // its own options: [method] beta = ...
  virtual void validate() const {}  // cross-field errors
  virtual Needs needs() const { return {}; }
  virtual std::vector<Equation> equations() const { return {}; }  // its own part, in order, with values

  // A_it for every token of the batch, from the old policy, once per step. advantage: [N].
  virtual void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const = 0;
  // What the critic learns, [N]; called only if needs().critic.
  virtual void returns(const Batch& /*batch*/, std::span<float> /*returns*/) const {}

  // Only where the method changes the loss itself: per token, from whole sequences. Default: methods/clipped_ratio.h.
  virtual void token_loss(const LossInput& in, LossOutput& out) const;
  // Only where the loss depends on a choice among the tokens of a scope: mark[t] = 0 as received, or what the method
  // makes of it; token_loss then reads in.mark.
  virtual SelectionScope selection_scope() const { return SelectionScope::none; }
  virtual void select(const LossInput& /*in*/, std::span<uint8_t> /*mark*/) const {}
  virtual bool counted(uint8_t /*mark*/) const { return true; }  // false: neither in the sum nor in the denominator
  // Whether a token of advantage 0 has loss and derivatives exactly 0, whatever its log-probs: the trainer then skips
  // the backward pass of responses that have no other.
  virtual bool silent_at_zero_advantage() const { return true; }
  // What actor/ppo_kl averages, of a token's lp and old lp.
  virtual double drift(double logprob, double old_logprob) const { return old_logprob - logprob; }
};

struct MethodRow {
  const char* name;
  std::unique_ptr<Method> (*make)();
};
std::span<const MethodRow> method_rows();
// Throws Error("config") naming the nearest method.
std::unique_ptr<Method> make_method(const std::string& name);

}  // namespace ucas
