#include "objective/aggregate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/rng.h"
#include "base/str.h"
#include "methods/registry.h"
#include "support/batches.h"
#include "support/loss_methods.h"

namespace ucas {
namespace {

using testing::LossCase;
using testing::run_objective;

constexpr Aggregation kAll[] = {Aggregation::token_mean,
                                Aggregation::seq_mean_token_mean,
                                Aggregation::seq_mean_token_sum,
                                Aggregation::seq_mean_token_sum_norm,
                                Aggregation::row_mean_token_sum_norm,
                                Aggregation::group_token_mean};

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
  for (float& lp : mini.rollout_logprob) lp += static_cast<float>(0.3 * rng.normal());
  return mini;
}

// A method as a run may have it: every row under every preset, and again with a share of tokens that selects many.
void for_every_method(const std::function<void(const std::string&, const Method&)>& use) {
  for (const MethodRow& row : method_rows()) {
    for (const std::string& preset : row.presets) {
      std::unique_ptr<Method> method = row.make(preset);
      use(str(row.name, " ", preset), *method);
      if (!method->needs().selection) continue;
      for (const char* share : {"ratio", "lb", "rho"}) {
        ucas::apply(*method, {{share, 0.1, share, false}}, false);
      }
      use(str(row.name, " ", preset, " on many tokens"), *method);
    }
  }
}

TEST(objective, the_gradient_does_not_depend_on_the_micro_batch_size) {
  for_every_method([](const std::string& name, const Method& method) {
    for (Aggregation aggregation : kAll) {
      SCOPED_TRACE(name);
      ObjectiveConfig objective = method.objective_defaults();
      objective.aggregation = aggregation;
      objective.entropy_coeff = 0.01;
      objective.tis = Tis::token;
      LossCase mini = random_mini(3, 23);
      auto whole = run_objective(method, objective, mini, 0, 12);
      for (size_t size : {1, 2, 7}) {
        auto cut = run_objective(method, objective, mini, size, 12);
        EXPECT_EQ(cut.d_logprob, whole.d_logprob);
        EXPECT_EQ(cut.d_entropy, whole.d_entropy);
        EXPECT_NEAR(cut.metrics.pg_loss, whole.metrics.pg_loss, 1e-12);
        EXPECT_NEAR(cut.metrics.clipfrac, whole.metrics.clipfrac, 1e-12);
        EXPECT_NEAR(cut.metrics.entropy, whole.metrics.entropy, 1e-12);
      }
    }
  });
}

// Central differences, at every token that is not within a step of an edge (a clip, |lp - old| at 0). Some derivatives
// are not those of the loss as a function: what a method calls a number is none of it.
TEST(objective, the_gradient_is_the_derivative_of_the_loss) {
  for_every_method([](const std::string& name, const Method& method) {
    SCOPED_TRACE(name);
    bool weight_is_a_number = name.starts_with("cispo") || name.starts_with("dppo");
    bool entropy_is_a_number = name.starts_with("entropy_adv");
    ObjectiveConfig objective = method.objective_defaults();
    objective.entropy_coeff = 0.5;
    objective.tis = Tis::sequence;
    LossCase mini = random_mini(11, 6);
    mini.mark.resize(mini.logprob.size());
    select_tokens(method, objective, mini.input(), mini.mark);  // the choice is held, as in an update
    auto at = run_objective(method, objective, mini, 0, 40);
    int compared = 0, edges = 0;
    for (size_t t = 0; t < mini.logprob.size(); ++t) {
      const float step = 1.0f / 512;
      auto moved = [&](std::vector<float> LossCase::* field, float by) {
        LossCase other = mini;
        (other.*field)[t] += by;
        return run_objective(method, objective, other, 0, 40);
      };
      auto below = moved(&LossCase::logprob, -step), above = moved(&LossCase::logprob, step);
      // What a token shares with the likeliest ones (SimKO) is of its ratio, too.
      auto derivative = [&](const testing::ObjectiveResult& of) { return of.d_logprob[t] + of.d_likely[t]; };
      double slope = (above.loss - below.loss) / (2 * step), d = derivative(at);
      // Away from an edge the derivative changes by a factor of about exp(step), no more.
      double bend = std::max(std::abs(derivative(above) - d), std::abs(derivative(below) - d));
      bool edge = bend > 0.05 * std::abs(d) + 1e-6;
      edges += edge;
      if (!edge && !weight_is_a_number) {
        EXPECT_NEAR(d, slope, 3e-4) << t;
        ++compared;
      }
      if (!entropy_is_a_number) {
        double by_H = (moved(&LossCase::entropy, step).loss - moved(&LossCase::entropy, -step).loss) / (2 * step);
        EXPECT_NEAR(at.d_entropy[t], by_H, 3e-4) << t;
      }
    }
    if (!weight_is_a_number) {
      EXPECT_GT(compared, 4 * edges);
    }
  });
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
    padded.sequences.back().group = mini.sequences[i].group;
    padded.add({}, {}, {});
    padded.sequences.back().group = 100 + static_cast<int64_t>(i);  // a prompt without any token
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
  auto forking = [](double rho, const char* preset) {
    auto method = make_method("forking_tokens", preset);
    ucas::apply(*method, {{"rho", rho, "rho", false}});
    return method;
  };
  auto released = run_objective(*forking(0.5, "released"), objective, mini, 0);
  EXPECT_EQ(released.d_logprob, (std::vector<float>{0, -1, 0.5f, 0}));
  EXPECT_DOUBLE_EQ(released.metrics.pg_loss, -0.5);
  auto of_all = run_objective(*forking(0.5, "trl"), objective, mini, 0);
  EXPECT_EQ(of_all.d_logprob, (std::vector<float>{0, -0.5f, 0.25f, 0}));
  // A response none of whose tokens is counted is no response of a sequence mean.
  objective.aggregation = Aggregation::seq_mean_token_mean;
  auto one_left = run_objective(*forking(0.25, "released"), objective, mini, 0);
  EXPECT_EQ(one_left.d_logprob, (std::vector<float>{0, -2, 0, 0}));
}

// Eq. 4 and 11: 1 / sum_j |o_j| is inside the expectation over prompts.
TEST(objective, the_group_token_mean_weighs_each_prompt_the_same_whatever_its_length) {
  // Prompts P and Q of 100 and 300 tokens in responses of unequal lengths; loss 1 on P, 0 on Q.
  LossCase mini;
  std::vector<float> losses;
  const std::pair<int64_t, std::vector<int>> prompts[] = {{7, {60, 0, 40}}, {3, {100, 20, 180}}};
  for (const auto& [group, lengths] : prompts) {
    for (int length : lengths) {
      std::vector<float> numbers, zeros(static_cast<size_t>(length));
      for (int t = 0; t < length; ++t) {
        numbers.push_back(static_cast<float>(losses.size()));
        losses.push_back(group == 7 ? 1.0f : 0.0f);
      }
      mini.add(zeros, zeros, numbers);
      mini.sequences.back().group = group;
    }
  }
  auto method = testing::make_fixed_loss(losses);
  ObjectiveConfig objective;
  EXPECT_NEAR(run_objective(*method, objective, mini, 0).metrics.pg_loss, 0.25, 1e-7);  // verl's token mean
  objective.aggregation = Aggregation::group_token_mean;
  for (size_t micro : {0, 1, 2, 5}) {
    auto result = run_objective(*method, objective, mini, micro);
    EXPECT_NEAR(result.metrics.pg_loss, 0.5, 1e-7);
    EXPECT_FLOAT_EQ(result.d_logprob.front(), 0.5f / 100);
    EXPECT_FLOAT_EQ(result.d_logprob.back(), 0.5f / 300);
  }
}

TEST(objective, papers_means_are_per_prompt_and_the_released_ones_per_token) {
  for (const char* name : {"ucas", "dapo"}) {
    auto paper = make_method(name), released = make_method(name, "released");
    EXPECT_EQ(paper->objective_defaults().aggregation, Aggregation::group_token_mean) << name;
    EXPECT_EQ(released->objective_defaults().aggregation, Aggregation::token_mean) << name;
  }
}

TEST(objective, denominators_add_up_over_ranks) {
  LossCase mini = random_mini(8, 10), a = mini.slice(0, 4), b = mini.slice(4, 6);
  Denominators sum = denominators({}, a.input(), 12);
  sum += denominators({}, b.input(), 12);
  Denominators whole = denominators({}, mini.input(), 12);
  EXPECT_EQ(sum.token_count, whole.token_count);
  EXPECT_EQ(sum.sequences, whole.sequences);
  EXPECT_EQ(sum.rows, 10);
  EXPECT_EQ(sum.group_tokens, whole.group_tokens);
  EXPECT_EQ(sum.norm_length, 12);
}

}  // namespace
}  // namespace ucas
