#include "objective/loss/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/rng.h"
#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

using testing::LossCase;

constexpr const char* kSelecting[] = {"clip_cov", "kl_cov", "forking_tokens"};

// Ragged responses; entropies in steps of a quarter, so that many are equal.
LossCase ragged_mini(uint64_t seed, size_t sequences) {
  Rng rng(seed, 2);
  LossCase mini;
  for (size_t i = 0; i < sequences; ++i) {
    std::vector<float> lp, old, A, H;
    auto advantage = static_cast<float>(rng.below(5) - 2);
    for (int64_t t = 1 + rng.below(12); t > 0; --t) {
      old.push_back(static_cast<float>(-4 * rng.uniform()));
      lp.push_back(old.back() + static_cast<float>(0.2 * rng.normal()));
      A.push_back(advantage);
      H.push_back(0.25f * static_cast<float>(rng.below(9)));
    }
    mini.add(lp, old, A, H);
  }
  return mini;
}

// A method under options that select a good number of tokens.
std::unique_ptr<Method> selecting(const std::string& name, const char* scope = "mini") {
  auto method = make_method(name);
  std::vector<Setting> settings = {{"scope", std::string(scope), "scope", false}};
  if (name == "clip_cov") {
    for (auto [key, value] : {std::pair{"ratio", 0.1}, {"lb", 0.1}, {"ub", 1e6}}) {
      settings.push_back({key, value, key, false});
    }
  }
  if (name == "kl_cov") settings.push_back({"ratio", 0.2, "ratio", false});
  ucas::apply(*method, settings);
  return method;
}

// What is marked, as (response, position).
std::set<std::pair<int64_t, int64_t>> marked(const Method& method, const LossCase& mini, uint64_t seed = 7) {
  std::vector<uint8_t> mark(mini.logprob.size());
  LossInput in = mini.input();
  in.seed = seed;
  ObjectiveConfig objective = method.objective_defaults();
  select_tokens(method, objective, in, mark);
  std::set<std::pair<int64_t, int64_t>> chosen;
  for (const Sequence& s : mini.sequences) {
    for (int64_t t = 0; t < s.length; ++t) {
      if (mark[static_cast<size_t>(s.first + t)] != 0) chosen.emplace(s.response, t);
    }
  }
  return chosen;
}

TEST(selection, the_order_in_which_responses_are_packed_chooses_nothing) {
  for (const char* name : kSelecting) {
    auto method = selecting(name);
    LossCase mini = ragged_mini(5, 40), turned;
    for (size_t i = 40; i-- > 0;) {
      LossCase one = mini.slice(i, 1);
      turned.add(one.logprob, one.old_logprob, one.advantage, one.entropy);
      turned.sequences.back().response = static_cast<int64_t>(i);
    }
    auto chosen = marked(*method, mini);
    EXPECT_GT(chosen.size(), 10u) << name;
    EXPECT_LT(chosen.size(), mini.logprob.size() / 2) << name;
    EXPECT_EQ(chosen, marked(*method, turned)) << name;
  }
}

TEST(selection, equal_scores_are_told_apart_by_the_tokens_own_numbers) {
  // Whatever the batch calls the responses: of four tokens of equal entropy the two likelier ones are taken.
  for (bool renamed : {false, true}) {
    LossCase mini;
    for (float lp : {-3.0f, -1.0f, -2.0f, -4.0f}) mini.add({lp}, {lp}, {1}, {0.5f});
    if (renamed) std::swap(mini.sequences[0].response, mini.sequences[1].response);
    LossInput in = mini.input();
    std::vector<int64_t> two = largest(in, valid_tokens(in), std::vector<double>(4, 0.5), 2);
    EXPECT_EQ(std::set<int64_t>(two.begin(), two.end()), (std::set<int64_t>{1, 2}));
  }
}

TEST(selection, a_nan_is_chosen_rather_than_hidden) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : kSelecting) {
    auto method = selecting(name);
    LossCase mini = ragged_mini(5, 12);
    mini.logprob[3] = mini.entropy[3] = nan;
    auto result = run_objective(*method, method->objective_defaults(), mini, 0);
    EXPECT_TRUE(std::isnan(result.d_logprob[3])) << name;
  }
}

TEST(selection, the_quantile_is_that_of_numpy) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2, 4}, 0.8), 3.4);
  EXPECT_DOUBLE_EQ(quantile({5}, 0.8), 5);
  std::vector<double> x;
  for (int i = 0; i < 36; ++i) x.push_back(0.1 * i);
  EXPECT_EQ(quantile(x, 0.8), x[28]);  // 0.8 * 35 is 28, up to rounding
}

TEST(clip_cov_method, the_draw_is_uniform_among_the_candidates_and_differs_between_updates) {
  // 50 tokens of equal covariance, a tenth left out: each should be met about equally often.
  LossCase mini;
  std::vector<float> lp(50, -1), low(50, -3), good(50, 1), bad(50, -1);
  mini.add(lp, lp, good);
  mini.add(low, low, bad);
  auto method = make_method("clip_cov");
  ucas::apply(*method, {{"ratio", 0.05, "ratio", false}, {"lb", 0.5, "lb", false}});
  std::vector<int> met(100);
  const int updates = 2000;
  for (int u = 0; u < updates; ++u) {
    auto chosen = marked(*method, mini, static_cast<uint64_t>(u));
    EXPECT_EQ(chosen.size(), 5u);
    for (auto [response, t] : chosen) ++met[static_cast<size_t>(50 * response + t)];
  }
  for (int count : met) EXPECT_NEAR(count, 100, 50);  // mean 100, deviation 9.7
}

TEST(clip_cov_method, what_is_left_out_stays_in_the_denominator_and_is_the_clip_fraction) {
  LossCase mini;
  mini.add({-1, -1}, {-1, -1}, {1, 1});
  mini.add({-3, -3}, {-3, -3}, {-1, -1});  // every covariance is 1
  auto method = make_method("clip_cov");
  ucas::apply(*method, {{"ratio", 0.5, "ratio", false}, {"lb", 0.5, "lb", false}});
  auto result = run_objective(*method, method->objective_defaults(), mini, 0);
  EXPECT_EQ(std::count(result.d_logprob.begin(), result.d_logprob.end(), 0.0f), 2);
  for (float d : result.d_logprob) EXPECT_TRUE(d == 0 || std::abs(d) == 0.25f);
  EXPECT_EQ(result.metrics.clipfrac, 0.5);
}

TEST(clip_cov_method, a_token_that_the_ratio_clip_holds_is_no_candidate) {
  LossCase mini;
  mini.add({-1, -1.5f}, {-5, -1.5f}, {1, 1});  // the first has long passed 1 + clip_high
  mini.add({-4, -4}, {-4, -4}, {-1, -1});
  auto method = make_method("clip_cov");
  ucas::apply(*method, {{"ratio", 1.0, "ratio", false}, {"lb", 0.1, "lb", false}});
  EXPECT_EQ(marked(*method, mini), (std::set<std::pair<int64_t, int64_t>>{{0, 1}, {1, 0}, {1, 1}}));
}

TEST(kl_cov_method, the_penalty_pulls_back_and_is_nothing_on_the_first_update) {
  auto method = make_method("kl_cov");
  LossCase mini;
  mini.add({-1}, {-1}, {1});
  mini.add({-3}, {-3}, {-1});
  auto first = run_objective(*method, method->objective_defaults(), mini, 0);
  EXPECT_EQ(first.d_logprob, (std::vector<float>{-0.5f, 0.5f}));
  mini.logprob[0] = -0.5f;  // has risen, and has the largest covariance
  auto later = run_objective(*method, method->objective_defaults(), mini, 0);
  EXPECT_NEAR(later.d_logprob[0], 0.5 * (1 - std::exp(0.5)), 1e-6);
  EXPECT_NEAR(later.metrics.ppo_kl, 0.25, 1e-6);  // mean |lp - old|, not the signed mean
}

TEST(forking_tokens_method, the_two_forms_differ_by_one_over_rho) {
  LossCase mini;
  mini.add({-1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1}, {1, 1, 1, 1, 1}, {0.1f, 0.2f, 0.9f, 0.3f, 0.4f});
  auto released = make_method("forking_tokens"), trl = make_method("forking_tokens", "trl");
  auto a = run_objective(*released, released->objective_defaults(), mini, 0);
  auto b = run_objective(*trl, trl->objective_defaults(), mini, 0);
  EXPECT_EQ(a.d_logprob, (std::vector<float>{0, 0, -1, 0, 0}));
  EXPECT_EQ(b.d_logprob, (std::vector<float>{0, 0, -0.2f, 0, 0}));
}

TEST(forking_tokens_method, ties_are_kept_by_the_quantile_and_cut_by_the_count) {
  LossCase mini;
  std::vector<float> one(10, -1), A(10, 1), H(10, 0.5f);
  mini.add(one, one, A, H);
  auto released = make_method("forking_tokens"), trl = make_method("forking_tokens", "trl");
  EXPECT_EQ(marked(*released, mini).size(), 2u);
  EXPECT_EQ(marked(*trl, mini).size(), 10u);
}

}  // namespace
}  // namespace ucas
