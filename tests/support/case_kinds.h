// From a case to its check. Shared by the cases_*.cpp; others include algorithm_cases.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/batch.h"
#include "methods/method.h"
#include "support/algorithm_cases.h"
#include "support/batches.h"

namespace ucas::testing {

// Runs the check that fits; throws NotCovered.
void check_case(CaseRun& run);
bool has_engine_cases();  // is this the binary with LibTorch?

// "seed-grpo", "reinforce++", "ppo-gae" ... as the registry calls them; throws NotCovered while there is no such row.
std::string registry_name(const std::string& method);
// The row under the preset that the variant names ("released"; "trl-group" is trl), the first one otherwise.
std::unique_ptr<Method> open_method(const std::string& row, const std::string& variant);
// Gives the method every input that is one of its options (or another name of one), and marks it as read.
void apply_options(CaseRun& run, Method& method);
// The method's defaults, with the loss options of the case; a dual clip only if the case has one.
ObjectiveConfig case_objective(CaseRun& run, const Method& method);
// "k1", "low_var_kl", "k3+" ...; throws NotCovered.
KlEstimator kl_estimator_of(const std::string& name);
// "token-mean", "seq-mean-token-sum-norm(const=3)" ...; throws Error on another name.
void set_aggregation(ObjectiveConfig& objective, const std::string& name);

// A case's rows as a batch. Rows of one uid need not be neighbours there, in a batch they are.
struct CaseBatch {
  Batch batch;
  std::vector<size_t> response_of_row;
  std::vector<Json> uid_of_group;
  // Back to the case's order: [N] and [B].
  std::vector<double> packed(std::span<const float> values) const;
  std::vector<double> packed(std::span<const double> values) const;
  std::vector<double> by_row(std::span<const float> values) const;
};
CaseBatch case_batch(CaseRun& run);
// The same rows at update time.
LossCase case_mini_batch(CaseRun& run);

// Families of checks.
void check_advantages(CaseRun& run);    // rewards and signals in, A out
void check_policy_loss(CaseRun& run);   // log-probs and advantages in, losses and gradients out
void check_objective(CaseRun& run);     // several losses together, by automatic differentiation
void check_aggregation(CaseRun& run);   // token losses in, their means out
void check_accumulation(CaseRun& run);  // the same, cut into micro-batches
void check_kl_estimator(CaseRun& run);
void check_ktae(CaseRun& run);
void check_gae(CaseRun& run);
void check_value_loss(CaseRun& run);
void check_mismatch(CaseRun& run);
void check_pass_at_k(CaseRun& run);

}  // namespace ucas::testing
