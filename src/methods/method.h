// What differs between RL methods: which signals they need, how rewards become advantages, and, for a few, the loss.
// A method is one file methods/NAME.cpp and one row of methods/registry.h. Plain loops, no autograd, no LibTorch.
// Fed by train/collect + train/logprobs (a full Batch); feeds train/objective. The trainer never compares method names.
// Legend (core/batch.h): B responses, G per prompt, N packed tokens.
// Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/batch.h"

namespace ucas {

// How the per-token losses of a mini-batch become one number (methods/aggregate.h has the formulas). The last two
// divide by a constant length: verl's Dr.GRPO does not divide by the number of responses, Oat's divides by all of them.
enum class Aggregation {
  token_mean,
  seq_mean_token_mean,
  seq_mean_token_sum,
  seq_mean_token_sum_norm,
  row_mean_token_sum_norm
};

// Estimators of KL(pi || pi_ref) per token (methods/kl.h).
enum class KlEstimator { k1, abs, k2, k3, k3_plus };

// The loss of Eq. 1, 2, 4, 11. A method sets its own defaults; the config file overrides them.
struct ObjectiveConfig {
  double clip_low = 0.2;   // eps_low
  double clip_high = 0.2;  // eps_high
  double dual_clip = 3.0;  // c > 1; 0 = off
  Aggregation aggregation = Aggregation::token_mean;
  double norm_length = 0;    // constant of the ..._norm aggregations; 0 = the response limit
  double entropy_coeff = 0;  // entropy bonus
  double kl_coeff = 0;       // KL loss against the reference; not in fields() while train holds no reference
  KlEstimator kl_estimator = KlEstimator::k3;
  bool keep_mixed_groups = false;  // DAPO dynamic sampling: train only on groups with 0 < correct < G
  void fields(Fields& f);
};

// What the trainer must provide. Only these are computed and held.
struct Needs {
  bool answer_classes = false;  // Verdict::answer_class within each group
  bool reference = false;       // Batch::ref_logprob
};

// Where a token_loss looks. Its spans always hold whole sequences: any number of them for `token` and `sequence`
// (a micro-batch), the whole mini-batch for `mini`. Only at `mini` scope may it change the weights.
enum class LossScope { token, sequence, mini };

// One scope's tokens at update time. All spans are [n]; `first`/`length` of sequences index into them.
struct Sequence {
  int64_t first = 0, length = 0;
  int64_t response = 0;  // index in Batch::responses
};
struct LossInput {
  std::span<const Sequence> sequences;
  std::span<const float> logprob;     // lp, current policy
  std::span<const float> entropy;     // H, current policy
  std::span<const float> confidence;  // C, current policy
  std::span<const float> old_logprob, rollout_logprob, advantage;
  std::span<const float> ref_logprob;  // frozen reference; empty unless needed
  uint64_t seed = 0;                   // for a method that draws: Rng(seed, stream); differs by step and mini-batch
  const ObjectiveConfig* objective = nullptr;
};
// Per token, before aggregation: the loss, its derivatives with respect to lp, H and C, and the token's weight in the
// aggregation (1 = counted; 0 = neither in the sum nor in the denominator). `clipped`: 1 upper/lower clip, 2 dual clip.
// token_loss receives them as 0, the weight as 1, and writes what differs.
struct LossOutput {
  std::span<float> loss, d_logprob, d_entropy, d_confidence, weight;
  std::span<uint8_t> clipped;
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
  virtual Needs needs() const { return {}; }
  virtual ObjectiveConfig objective_defaults() const { return {}; }
  virtual void fields(Fields&) {}   // its own options: [method] beta = ...
  virtual void validate() const {}  // cross-field errors
  virtual LossScope loss_scope() const { return LossScope::token; }

  // A_it for every token of the batch, from the old policy, once per step. advantage: [N].
  virtual void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const = 0;
  // Only where the method changes the loss itself. Default: methods/clipped_ratio.h.
  virtual void token_loss(const LossInput& in, LossOutput& out) const;
};

struct MethodRow {
  const char* name;
  std::unique_ptr<Method> (*make)();
};
std::span<const MethodRow> method_rows();
// Throws Error("config") naming the nearest method.
std::unique_ptr<Method> make_method(const std::string& name);

}  // namespace ucas
