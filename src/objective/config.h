// The options of the loss (Eq. 1, 2, 4, 11), of what a step trains on, and of the models that train with the policy.
// A method brings its own defaults; the config file overrides them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/text/fields.h"
#include "core/model_options.h"

namespace ucas {

// How the per-token losses of a mini-batch become one number (objective/aggregate.h has the formulas). The two `norm`
// divide by a constant length: verl's Dr.GRPO does not divide by the number of responses, Oat's divides by all of them.
enum class Aggregation {
  token_mean,
  seq_mean_token_mean,
  seq_mean_token_sum,
  seq_mean_token_sum_norm,
  row_mean_token_sum_norm,
  group_token_mean
};

// Estimators of KL(pi || pi_ref) per token (objective/loss/kl.h).
enum class KlEstimator { k1, abs, k2, k3, k3_plus };

// What is done about a sampler whose probabilities differ from the trainer's
// (objective/loss/rollout_correction.h).
enum class Tis { off, token, sequence, sequence_mask };

// Dynamic sampling: what a prompt's responses are compared by, and what happens until enough prompts passed
// (objective/filter/dynamic_sampling.h).
enum class KeepMetric { acc, score, reward };
enum class KeepOrder { refill, prefer };

struct ObjectiveConfig {
  double clip_low = 0.2;   // eps_low
  double clip_high = 0.2;  // eps_high
  double dual_clip = 3.0;  // c > 1; 0 = off
  Aggregation aggregation = Aggregation::token_mean;
  double norm_length = 0;     // no option: constant of the ..._norm aggregations; 0 = the response limit
  double entropy_coeff = 0;   // entropy bonus
  double entropy_target = 0;  // nats; > 0: the bonus is steered towards it (objective/loss/kl.h)
  double kl_coeff = 0;        // KL loss against the frozen reference
  KlEstimator kl_estimator = KlEstimator::k3;
  bool keep_mixed_groups = false;            // DAPO dynamic sampling: train only on groups with 0 < correct < G
  KeepMetric keep_metric = KeepMetric::acc;  // what must differ in such a group: verdict, score, or shaped reward
  double keep_low = 0, keep_high = 1;        // PRIME: train only on prompts with a mean accuracy within, ends included
  bool keep_untruncated = false;             // no option, of PRIME in verl: and without a response at the length limit
  KeepOrder keep_order =
      KeepOrder::refill;  // no option: until enough pass, or those that pass first and others after them
  Tis tis = Tis::off;     // truncated importance sampling: weights from old and rollout log-probs
  double tis_cap = 2;     // no option: C, where a weight is cut, or its sequence left out (sequence_mask)
  void fields(Fields& f);
};

// A critic for the policy: the policy's initial body with a scalar head, trained on Method::returns().
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

}  // namespace ucas
