#include "methods/aggregate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "methods/registry.h"
#include "support/batches.h"
#include "support/loss_methods.h"

namespace ucas {
namespace {

using testing::LossCase;
using testing::run_objective;

constexpr Aggregation kAll[] = {Aggregation::token_mean, Aggregation::seq_mean_token_mean,
                                Aggregation::seq_mean_token_sum, Aggregation::seq_mean_token_sum_norm,
                                Aggregation::row_mean_token_sum_norm};

// Sequences of 0 to 12 tokens with log-ratios of about 0.3, as a mini-batch some updates old has them.
LossCase random_mini(uint64_t seed, size_t sequences) {
  Rng rng(seed, 1);
  LossCase mini;
  for (size_t i = 0; i < sequences; ++i) {
    std::vector<float> lp, old, A, H;
    float advantage = static_cast<float>(rng.normal());
    for (int64_t t = rng.below(13); t > 0; --t) {
      old.push_back(static_cast<float>(-3 * rng.uniform()));
      lp.push_back(old.back() + static_cast<float>(0.3 * rng.normal()));
      A.push_back(advantage);
      H.push_back(static_cast<float>(2 * rng.uniform()));
    }
    mini.add(lp, old, A, H);
  }
  return mini;
}

TEST(objective, the_gradient_does_not_depend_on_the_micro_batch_size) {
  for (const char* name : {"grpo", "dapo"}) {
    std::unique_ptr<Method> method = make_method(name);
    for (Aggregation aggregation : kAll) {
      ObjectiveConfig objective = method->objective_defaults();
      objective.aggregation = aggregation;
      objective.entropy_coeff = 0.01;
      LossCase mini = random_mini(3, 23);
      auto whole = run_objective(*method, objective, mini, 0, 12);
      EXPECT_GT(whole.metrics.clipfrac, 0);
      for (size_t size : {1, 2, 7}) {
        auto cut = run_objective(*method, objective, mini, size, 12);
        EXPECT_EQ(cut.d_logprob, whole.d_logprob);
        EXPECT_EQ(cut.d_entropy, whole.d_entropy);
        EXPECT_NEAR(cut.metrics.pg_loss, whole.metrics.pg_loss, 1e-12);
        EXPECT_NEAR(cut.metrics.clipfrac, whole.metrics.clipfrac, 1e-12);
        EXPECT_NEAR(cut.metrics.entropy, whole.metrics.entropy, 1e-12);
      }
    }
  }
}

TEST(objective, the_gradient_is_the_derivative_of_the_loss) {
  for (bool sequence_method : {false, true}) {
    std::unique_ptr<Method> method = sequence_method ? testing::make_gspo() : make_method("dapo");
    ObjectiveConfig objective = method->objective_defaults();
    objective.clip_low = objective.clip_high = 0.4;
    objective.entropy_coeff = 0.5;
    LossCase mini = random_mini(11, 6);
    auto at = run_objective(*method, objective, mini, 0);
    for (size_t t = 0; t < mini.logprob.size(); ++t) {
      auto moved = [&](std::vector<float> LossCase::* field, float step) {
        LossCase other = mini;
        (other.*field)[t] += step;
        return run_objective(*method, objective, other, 0).loss;
      };
      float step = 1.0f / 512;
      double by_lp = (moved(&LossCase::logprob, step) - moved(&LossCase::logprob, -step)) / (2 * step);
      double by_H = (moved(&LossCase::entropy, step) - moved(&LossCase::entropy, -step)) / (2 * step);
      EXPECT_NEAR(at.d_logprob[t], by_lp, 2e-4) << t;
      EXPECT_NEAR(at.d_entropy[t], by_H, 2e-4) << t;
    }
  }
}

TEST(objective, an_entropy_bonus_reaches_tokens_of_advantage_zero) {
  LossCase mini;
  mini.add({-1, -2}, {-1, -2}, {0, 0}, {0.5f, 1.5f});
  ObjectiveConfig objective;
  objective.entropy_coeff = 0.25;
  auto result = run_objective(*make_method("dapo"), objective, mini, 0);
  EXPECT_EQ(result.d_logprob, (std::vector<float>{0, 0}));
  EXPECT_EQ(result.d_entropy, (std::vector<float>{-0.125f, -0.125f}));
  EXPECT_DOUBLE_EQ(result.metrics.entropy, 1.0);
  EXPECT_DOUBLE_EQ(result.loss, -0.25);
  EXPECT_DOUBLE_EQ(result.metrics.pg_loss, 0.0);
}

TEST(objective, empty_responses_change_nothing_but_oats_row_count) {
  LossCase mini = random_mini(5, 9), padded;
  for (size_t i = 0; i < mini.sequences.size(); ++i) {
    LossCase row = mini.slice(i, 1);
    padded.add(row.logprob, row.old_logprob, row.advantage, row.entropy);
    padded.add({}, {}, {});
  }
  for (Aggregation aggregation : kAll) {
    ObjectiveConfig objective;
    objective.aggregation = aggregation;
    auto plain = run_objective(*make_method("grpo"), objective, mini, 0, 12);
    auto with = run_objective(*make_method("grpo"), objective, padded, 0, 12);
    double factor = aggregation == Aggregation::row_mean_token_sum_norm ? 2 : 1;
    for (size_t t = 0; t < plain.d_logprob.size(); ++t) EXPECT_FLOAT_EQ(plain.d_logprob[t], factor * with.d_logprob[t]);
  }
}

TEST(objective, a_mini_batch_of_empty_responses_is_no_error) {
  LossCase mini;
  mini.add({}, {}, {});
  for (Aggregation aggregation : kAll) {
    ObjectiveConfig objective;
    objective.aggregation = aggregation;
    auto result = run_objective(*make_method("ucas"), objective, mini, 0);
    EXPECT_EQ(result.loss, 0.0);
    EXPECT_EQ(result.metrics.pg_loss, 0.0);
    EXPECT_EQ(result.metrics.clipfrac, 0.0);
  }
}

TEST(objective, tokens_of_weight_zero_leave_both_sum_and_denominator) {
  // Four tokens, the two of highest entropy carry the loss; on-policy, so that each loses -A.
  LossCase mini;
  mini.add({-1, -1}, {-1, -1}, {2, 2}, {0.1f, 0.9f});
  mini.add({-1, -1}, {-1, -1}, {-1, -1}, {0.8f, 0.2f});
  ObjectiveConfig objective;
  auto released = run_objective(*testing::make_forking_tokens(0.5, true), objective, mini, 0);
  EXPECT_EQ(released.d_logprob, (std::vector<float>{0, -1, 0.5f, 0}));
  EXPECT_DOUBLE_EQ(released.metrics.pg_loss, -0.5);
  auto of_all = run_objective(*testing::make_forking_tokens(0.5, false), objective, mini, 0);
  EXPECT_EQ(of_all.d_logprob, (std::vector<float>{0, -0.5f, 0.25f, 0}));
  // A response none of whose tokens is counted is no response of a sequence mean.
  objective.aggregation = Aggregation::seq_mean_token_mean;
  auto one_left = run_objective(*testing::make_forking_tokens(0.25, true), objective, mini, 0);
  EXPECT_EQ(one_left.d_logprob, (std::vector<float>{0, -2, 0, 0}));
}

TEST(objective, one_ratio_per_response_clips_the_response_as_a_whole) {
  LossCase mini;
  mini.add({-1, -2}, {-1.001f, -2.001f}, {1, 1});  // ratio 1.001 > 1.0004
  mini.add({-1, -2}, {-1.002f, -1.998f}, {1, 1});  // up and down cancel: ratio 1
  std::unique_ptr<Method> gspo = testing::make_gspo();
  auto result = run_objective(*gspo, gspo->objective_defaults(), mini, 1);
  EXPECT_EQ(result.d_logprob[0], 0.0f);
  EXPECT_EQ(result.d_logprob[1], 0.0f);
  EXPECT_NEAR(result.d_logprob[2], -0.25, 1e-6);
  EXPECT_DOUBLE_EQ(result.metrics.clipfrac, 0.5);
}

TEST(objective, denominators_add_up_over_ranks) {
  std::unique_ptr<Method> method = make_method("grpo");
  LossCase mini = random_mini(8, 10), a = mini.slice(0, 4), b = mini.slice(4, 6);
  Denominators sum = denominators(*method, {}, a.input(), 12);
  sum += denominators(*method, {}, b.input(), 12);
  Denominators whole = denominators(*method, {}, mini.input(), 12);
  EXPECT_EQ(sum.token_count, whole.token_count);
  EXPECT_EQ(sum.sequences, whole.sequences);
  EXPECT_EQ(sum.rows, 10);
  EXPECT_EQ(sum.norm_length, 12);
}

}  // namespace
}  // namespace ucas
