// Cases of what happens to rewards before advantages, and of weights against a mismatched sampler.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "methods/registry.h"
#include "objective/aggregate.h"
#include "objective/loss/rollout_correction.h"
#include "support/case_kinds.h"

namespace ucas::testing {

// Token weights, response weights, and the clipped loss under the former.
void check_mismatch(CaseRun& run) {
  LossCase mini = case_mini_batch(run);
  std::unique_ptr<Method> method = make_method("grpo");
  ObjectiveConfig objective = case_objective(run, *method);
  objective.aggregation = Aggregation::token_mean;
  objective.tis_cap = run.number("C");
  bool masked = run.variant().find("mask") != std::string::npos || run.variant().starts_with("trl");
  for (auto [tis, weight, loss] : {std::tuple{Tis::token, "token_weight", "loss_token_level"},
                                   {masked ? Tis::sequence_mask : Tis::sequence, "seq_weight", "loss_seq_level"}}) {
    objective.tis = tis;
    LossInput in = mini.input();
    RolloutCorrection correction = rollout_correction(objective, in.sequences, in.old_logprob, in.rollout_logprob);
    if (tis == Tis::token) {
      run.tokens_are(weight, correction.weight);
    } else {
      std::vector<double> by_response;
      for (const Sequence& s : mini.sequences) {
        by_response.push_back(s.length == 0 ? 1 : correction.weight[static_cast<size_t>(s.first)]);
      }
      run.responses_are(weight, by_response);
    }
    for (size_t micro : {0, 1, 2}) run.number_is(loss, run_objective(*method, objective, mini, micro).loss);
  }
}

}  // namespace ucas::testing
