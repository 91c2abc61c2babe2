// reward.truncated = "mask": of a masked response its group's baseline counts the reward, and nothing else of the step
// counts anything.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/rng.h"
#include "base/str.h"
#include "methods/apply.h"
#include "objective/advantage/returns.h"
#include "objective/loss/kl.h"
#include "objective/loss/rollout_correction.h"
#include "support/random_batches.h"

namespace ucas {
namespace {

// Every response cut at the limit is masked; of wrong ones more are, as in a training.
Batch masked_batch(uint64_t seed, bool reward_kl = false) {
  Rng rng(seed, 1);
  std::vector<testing::FullGroup> groups =
      testing::random_groups(rng, {.groups = 6, .most_rows = 6, .most_tokens = 9, .reward_kl = reward_kl});
  for (testing::FullGroup& group : groups) {
    for (testing::FullRow& row : group) {
      const bool right = row.response.verdict.kind == VerdictKind::equal;
      if (!right && rng.below(2) == 0) row.response.finished = false;
      row.response.trained = row.response.finished;
    }
  }
  return testing::pack(groups);
}

struct WhitenedCase {
  const char *method, *preset;
};
constexpr WhitenedCase kWhitened[] = {{"reinforce_pp", "verl"}, {"reinforce_pp_baseline", "verl"},
                                      {"ppo", "orz"},           {"ppo", "verl"},
                                      {"prime", "verl"},        {"prime", "authors"},
                                      {"entropy_adv", "ppo"},   {"gdpo", "verl"}};

TEST(masked_responses, do_not_count_in_the_moments_of_a_method_that_whitens) {
  for (const auto& [name, preset] : kWhitened) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(str(name, ":", preset, ", seed ", seed));
      const Batch batch = masked_batch(seed);
      const std::vector<float> A = batch.trained(compute_advantages(name, batch, preset).advantage);
      ASSERT_GT(A.size(), 10u);
      ASSERT_LT(A.size(), batch.token.size());
      const double n = static_cast<double>(A.size()), mean = std::accumulate(A.begin(), A.end(), 0.0) / n;
      EXPECT_NEAR(mean, 0, 1e-6);
      double squares = 0;
      for (float a : A) squares += (a - mean) * (a - mean);
      EXPECT_NEAR(squares / n, 1, 0.1);
    }
  }
}

TEST(masked_responses, scale_gdpo_over_responses_by_those_that_are_trained) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Batch batch = masked_batch(seed);
    const std::vector<float> scaled = compute_advantages("gdpo", batch).advantage;
    const std::vector<float> sums = compute_advantages("gdpo", batch, "", {{"batch_norm", "off", "test"}}).advantage;
    double n = 0, sum = 0, squares = 0;
    for (const Response& o : batch.responses) {  // of S_i; an empty response of no group of one has none to show
      if (!o.trained || o.length == 0) continue;
      n += 1;
      sum += sums[o.first];
      squares += static_cast<double>(sums[o.first]) * sums[o.first];
    }
    double empty = 0;
    for (const Response& o : batch.responses) empty += o.trained && o.length == 0;
    if (empty > 0) continue;
    const double std = std::sqrt((squares - sum * sum / n) / (n - 1));
    for (const Response& o : batch.responses) {
      if (!o.trained) continue;
      EXPECT_NEAR(scaled[o.first], sums[o.first] / (std + 1e-4), 1e-5) << seed;
    }
  }
}

// Whatever the responses to a prompt say and earn, if all of them are masked, those to other prompts learn the same.
TEST(masked_responses, of_one_prompt_change_no_bit_of_what_others_learn_under_any_method) {
  for (const MethodRow& row : method_rows()) {
    for (const std::string& preset : row.presets) {
      const std::unique_ptr<Method> method = row.make(preset);
      for (uint64_t seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE(str(row.name, ":", preset, ", seed ", seed));
        Batch batch = masked_batch(seed);
        const Group& changed = batch.groups[seed % batch.groups.size()];
        for (int64_t i = changed.first; i < changed.first + changed.count; ++i) batch.responses[i].trained = false;
        Batch other = batch;
        Rng rng(seed, 9);
        for (int64_t i = changed.first; i < changed.first + changed.count; ++i) {
          Response& o = other.responses[i];
          o.reward = o.score = i % 2 == 0 ? 5 : -5;
          o.verdict.kind = o.reward > 0 ? VerdictKind::equal : VerdictKind::unequal;
          for (auto* signal : {&other.old_logprob, &other.signal("ref_logprob"), &other.signal("teacher_logprob"),
                               &other.signal("value"), &other.signal("prm_logratio"), &other.entropy, &other.confidence,
                               &other.logit}) {
            for (float& x : Batch::tokens(*signal, o)) x *= static_cast<float>(3 + rng.uniform());
          }
        }
        const std::vector<float> before = compute_advantages(*method, batch).advantage,
                                 after = compute_advantages(*method, other).advantage;
        for (const Response& o : batch.responses) {
          const auto A = Batch::tokens(before, o), B = Batch::tokens(after, o);
          if (!o.trained) {
            for (float a : B) EXPECT_EQ(a, 0);
          } else {
            ASSERT_EQ(std::memcmp(A.data(), B.data(), A.size_bytes()), 0);
          }
        }
      }
    }
  }
}

TEST(masked_responses, are_in_no_number_that_a_method_records_of_tokens) {
  for (const char* name : {"ucas", "entropy_adv", "ktae", "distill"}) {
    const std::unique_ptr<Method> method = make_method(name);
    if (std::string(name) == "distill") apply(*method, {{"teacher", "anything", "test"}});
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const Batch batch = masked_batch(seed);
      Batch other = batch;
      for (const Response& o : other.responses) {
        if (o.trained) continue;
        for (auto* signal : {&other.entropy, &other.confidence, &other.signal("teacher_logprob")}) {
          for (float& x : Batch::tokens(*signal, o)) x *= 7;
        }
      }
      const auto before = compute_advantages(*method, batch).recording.metrics,
                 after = compute_advantages(*method, other).recording.metrics;
      ASSERT_EQ(before.size(), after.size());
      for (size_t i = 0; i < before.size(); ++i) {
        // What stage 1 weighs a response by is its confidence against its whole group's.
        const std::string& metric = before[i].first;
        if (metric.starts_with("ucas/") && metric != "ucas/confidence/mean") continue;
        EXPECT_EQ(before[i].second, after[i].second) << metric << ", seed " << seed;
      }
    }
  }
}

TEST(masked_responses, are_not_in_the_released_ranges_of_token_certainties) {
  const Batch batch = masked_batch(3);
  Batch other = batch;
  for (const Response& o : other.responses) {
    if (o.trained) continue;
    for (float& x : Batch::tokens(other.old_logprob, o)) x = -100;
    for (float& x : Batch::tokens(other.logit, o)) x = 1000;
  }
  const std::vector<float> before = compute_advantages("ucas", batch, "released").advantage;
  EXPECT_EQ(before, compute_advantages("ucas", other, "released").advantage);
}

TEST(masked_responses, are_not_in_the_kl_that_steers_its_weight_nor_in_the_shares_of_the_rollout_correction) {
  Batch batch = masked_batch(5), other = batch;
  ObjectiveConfig objective;
  objective.tis = Tis::token;
  for (const Response& o : other.responses) {
    if (o.trained) continue;
    for (float& x : Batch::tokens(other.rollout_logprob, o)) x = -50;
    for (float& x : Batch::tokens(other.signal("ref_logprob"), o)) x = -50;
  }
  EXPECT_EQ(correction_metrics(objective, batch), correction_metrics(objective, other));
  EXPECT_EQ(take_kl_off_reward(batch, KlEstimator::k1, 0.1), take_kl_off_reward(other, KlEstimator::k1, 0.1));
}

TEST(masked_responses, leave_a_batch_without_them_as_it_was) {
  Rng rng(4, 1);
  const Batch batch = testing::pack(testing::random_groups(rng, {.groups = 3}));
  EXPECT_EQ(batch.trained(batch.entropy), batch.entropy);
  std::vector<double> x(batch.token.size());
  for (size_t t = 0; t < x.size(); ++t) x[t] = batch.signal("value")[t];
  whiten(batch, x);
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0), 0, 1e-9);
}

}  // namespace
}  // namespace ucas
