// Cases of KL in the reward.
#include <nlohmann/json.hpp>

#include "objective/advantage/returns.h"
#include "objective/loss/kl.h"
#include "support/case_kinds.h"

namespace ucas::testing {

namespace {

void check_kl_in_reward(CaseRun& run) {
  if (run.variant() == "controller" || run.has("horizon"))
    throw NotCovered{"the weight of the KL in the reward is fixed"};
  CaseBatch made = case_batch(run);
  std::vector<double> scores = run.packed("token_scores");  // a response's score stands at its last token
  size_t at = 0;
  for (size_t row = 0; row < run.rows(); ++row) {
    Response& o = made.batch.responses[made.response_of_row[row]];
    at += static_cast<size_t>(o.length);
    if (o.length == 0) continue;
    o.score = o.reward = static_cast<float>(scores[at - 1]);
    scores[at - 1] = 0;
  }
  KlEstimator estimator = KlEstimator::k1;
  for (const char* key : {"kl", "kl_penalty", "estimator"}) {
    if (run.has(key)) estimator = kl_estimator_of(run.in(key).get<std::string>());
  }
  double mean_kl = take_kl_off_reward(made.batch, estimator, run.number("beta"));
  std::vector<double> rewards = made.packed(token_rewards(made.batch));
  for (size_t t = 0; t < rewards.size(); ++t) rewards[t] += scores[t];  // scores elsewhere are not touched
  run.tokens_are("token_rewards", rewards);
  run.number_is("reward_kl_penalty", mean_kl);
}

const AddCaseKinds kKlReward{{{"kl-in-reward", check_kl_in_reward}}};

}  // namespace

}  // namespace ucas::testing
