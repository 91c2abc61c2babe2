// Cases of PRIME: the reward model's loss, token rewards, returns and advantages.
#include <cmath>
#include <nlohmann/json.hpp>

#include "methods/registry.h"
#include "support/case_kinds.h"
#include "support/implicit_prm_loss.h"

namespace ucas::testing {

namespace {

void check_prime(CaseRun& run) {
  std::unique_ptr<Method> method = open_method(registry_name("prime"), run.variant());
  CaseBatch made = case_batch(run);
  apply_options(run, *method);
  std::vector<float> advantage(made.batch.token.size(), std::nanf(""));
  Recording recording;
  method->advantages(made.batch, advantage, recording);
  run.tokens_are("advantages", made.packed(advantage));
  for (const Recording::Row& row : recording.rows) {
    if (row.name == "r") run.tokens_are("token_rewards", made.packed(row.values));
    if (row.name != "R") continue;
    run.tokens_are("returns", made.packed(row.values));
    std::vector<double> rewards;  // what the returns are sums of
    for (const Response& o : made.batch.responses) {
      for (auto t = static_cast<size_t>(o.first), end = t + static_cast<size_t>(o.length); t < end; ++t) {
        rewards.push_back(static_cast<double>(row.values[t]) - (t + 1 < end ? row.values[t + 1] : 0));
      }
    }
    run.tokens_are("reward_sum", made.packed(rewards));
  }
  for (const auto& [name, value] : recording.metrics) {
    if (name == "prm/normalizer") run.number_is("normalizer", value);
  }
  run.number_is("ce_loss", implicit_prm_loss(made.batch, run.number("beta")).loss);
}

const AddCaseKinds kPrime{{{"prime", check_prime}}};

}  // namespace

}  // namespace ucas::testing
