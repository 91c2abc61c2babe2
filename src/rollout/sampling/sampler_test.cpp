#include "rollout/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "base/text/json.h"
#include "kernels/lm_head.h"

namespace ucas {

namespace {

std::vector<float> random_logits(int64_t n, uint64_t seed, double scale = 2) {
  Rng rng(seed, 1);
  std::vector<float> logits;
  for (int64_t i = 0; i < n; ++i) logits.push_back(static_cast<float>(scale * rng.normal()));
  return logits;
}

// softmax in double, the reference for everything here.
std::vector<double> softmax(std::span<const float> logits, double temperature) {
  double most = *std::max_element(logits.begin(), logits.end()), sum = 0;
  std::vector<double> p;
  for (float x : logits) sum += p.emplace_back(std::exp((x - most) / temperature));
  for (double& x : p) x /= sum;
  return p;
}

// How often each id is sampled over an even grid of uniforms: inverse-CDF drawing must give its mass, to one grid step.
std::vector<double> shares(const SamplingConfig& config, std::span<const float> logits, int64_t draws) {
  Sampler sampler(config);
  std::vector<double> share(logits.size());
  for (int64_t i = 0; i < draws; ++i) {
    const double u = (static_cast<double>(i) + 0.5) / static_cast<double>(draws);
    share[static_cast<size_t>(sampler.sample(logits, u).token)] += 1.0 / static_cast<double>(draws);
  }
  return share;
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST(sampler, every_token_gets_exactly_its_probability_whatever_the_row_length) {
  for (int64_t n : {1, 2, 58, 63, 64, 65, 500}) {
    const auto logits = random_logits(n, static_cast<uint64_t>(n));
    const int64_t draws = 20000;
    const auto share = shares({.temperature = 0.7}, logits, draws);
    EXPECT_LT(largest_difference(share, softmax(logits, 0.7)), 2.0 / static_cast<double>(draws)) << "n = " << n;
  }
}

TEST(sampler, the_figures_are_those_of_the_distribution_at_this_temperature) {
  const auto logits = random_logits(1000, 7);
  for (double temperature : {0.5, 1.0, 2.0}) {
    Sampler sampler({.temperature = temperature});
    const auto p = softmax(logits, temperature);
    double entropy = 0, mean = 0;
    for (size_t v = 0; v < p.size(); ++v) {
      entropy -= p[v] * std::log(p[v]);
      mean += logits[v] / temperature / 1000;
    }
    for (double u : {0.0, 0.3, 0.999}) {
      const SampledToken sampled = sampler.sample(logits, u);
      const auto y = static_cast<size_t>(sampled.token);
      EXPECT_NEAR(sampled.logprob, std::log(p[y]), 2e-6);
      EXPECT_NEAR(sampled.entropy, entropy, 2e-5);
      EXPECT_NEAR(sampled.confidence, logits[y] / temperature - std::log(p[y]) - mean, 2e-5);
      EXPECT_EQ(sampled.logit, logits[y]);
    }
  }
}

TEST(sampler, without_truncation_the_log_prob_is_the_trainers_bit_for_bit) {
  for (int64_t n : {58, 512, 20000}) {
    const auto logits = random_logits(n, 3);
    Sampler sampler({.temperature = 0.8});
    const auto inverse = static_cast<float>(1 / 0.8);
    const kernels::RowStats stats = kernels::stats_of_row(logits.data(), n, inverse);
    const SampledToken sampled = sampler.sample(logits, 0.4);
    const auto expected = kernels::token_stats(stats, sampled.logit, inverse, n);
    EXPECT_EQ(sampled.logprob, expected.logprob);
    EXPECT_EQ(sampled.entropy, expected.entropy);
    EXPECT_EQ(sampled.confidence, expected.confidence);
  }
}

TEST(sampler, greedy_takes_the_first_of_the_largest_and_reports_at_temperature_one) {
  std::vector<float> logits = random_logits(300, 9);
  logits[17] = logits[200] = 40;
  Sampler sampler({.temperature = 0});
  for (double u : {0.0, 0.5, 0.99}) EXPECT_EQ(sampler.sample(logits, u).token, 17);
  EXPECT_NEAR(sampler.sample(logits, 0.1).logprob, std::log(softmax(logits, 1)[17]), 1e-6);
}

TEST(sampler, top_k_keeps_the_k_most_probable_and_renormalises) {
  const auto logits = random_logits(400, 11);
  auto p = softmax(logits, 1);
  auto sorted = p;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double cut = sorted[4];
  double kept = 0;
  for (double& x : p) kept += x >= cut ? x : 0;
  for (double& x : p) x = x >= cut ? x / kept : 0;
  EXPECT_LT(largest_difference(shares({.top_k = 5}, logits, 20000), p), 1e-4);
  Sampler sampler({.top_k = 5});
  const SampledToken sampled = sampler.sample(logits, 0.5);
  EXPECT_NEAR(sampled.logprob, std::log(p[static_cast<size_t>(sampled.token)]), 2e-6);
}

TEST(sampler, top_p_keeps_the_shortest_prefix_that_holds_the_mass) {
  // 0.5, 0.25, 0.125, 0.0625, 0.0625 in a scrambled order
  const std::vector<double> p = {0.0625, 0.25, 0.5, 0.0625, 0.125};
  std::vector<float> logits;
  for (double x : p) logits.push_back(static_cast<float>(std::log(x)));
  const auto kept = [&](double top_p) {
    std::vector<int> ids;
    const auto share = shares({.top_p = top_p}, logits, 4096);
    for (size_t v = 0; v < share.size(); ++v) {
      if (share[v] > 0) ids.push_back(static_cast<int>(v));
    }
    return ids;
  };
  EXPECT_EQ(kept(1e-6), (std::vector<int>{2}));
  EXPECT_EQ(kept(0.49), (std::vector<int>{2}));
  EXPECT_EQ(kept(0.6), (std::vector<int>{1, 2}));
  EXPECT_EQ(kept(0.8), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(kept(0.9), (std::vector<int>{0, 1, 2, 4}));  // the lower id of the two equal ones
  EXPECT_EQ(kept(0.99), (std::vector<int>{0, 1, 2, 3, 4}));
  Sampler sampler({.top_p = 0.7});
  EXPECT_NEAR(sampler.sample(logits, 0.1).logprob, std::log(0.5 / 0.75), 1e-6);
  EXPECT_NEAR(sampler.sample(logits, 0.9).logprob, std::log(0.25 / 0.75), 1e-6);
}

TEST(sampler, top_p_acts_on_what_top_k_left) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  // After top-k 2: 4/7 and 3/7; top-p 0.55 keeps the first alone (of the whole row it would keep two).
  const auto share = shares({.top_p = 0.55, .top_k = 2}, logits, 1000);
  EXPECT_DOUBLE_EQ(share[1] + share[2] + share[3], 0);
}

// By hand, of p = 0.4, 0.3, 0.16, 0.1, 0.04 in a scrambled order.
TEST(sampler, min_p_keeps_a_share_of_the_most_probable_and_acts_on_what_top_k_and_top_p_left) {
  const std::vector<double> p = {0.1, 0.4, 0.04, 0.16, 0.3};
  std::vector<float> logits;
  for (double x : p) logits.push_back(static_cast<float>(std::log(x)));
  const auto expect_kept = [&](const SamplingConfig& config, const std::vector<size_t>& ids) {
    double mass = 0;
    for (size_t v : ids) mass += p[v];
    std::vector<double> expected(p.size());
    for (size_t v : ids) expected[v] = p[v] / mass;
    EXPECT_LT(largest_difference(shares(config, logits, 2000), expected), 1e-3);
    Sampler sampler(config);
    for (double u : {0.01, 0.5, 0.99}) {
      const SampledToken sampled = sampler.sample(logits, u);
      EXPECT_NEAR(sampled.logprob, std::log(p[static_cast<size_t>(sampled.token)] / mass), 1e-6);
      EXPECT_NEAR(sampled.whole_logprob, std::log(p[static_cast<size_t>(sampled.token)]), 1e-6);
    }
  };
  expect_kept({.min_p = 0.09}, {0, 1, 2, 3, 4});
  expect_kept({.min_p = 0.2}, {0, 1, 3, 4});  // 0.2 x 0.4 = 0.08
  expect_kept({.min_p = 0.38}, {1, 3, 4});    // 0.152
  expect_kept({.min_p = 0.5}, {1, 4});
  expect_kept({.min_p = 1}, {1});
  expect_kept({.top_k = 2, .min_p = 0.2}, {1, 4});
  expect_kept({.top_p = 0.69, .min_p = 0.2}, {1, 4});
  // 0.4 + 0.3 + 0.16 = 0.86 is below 0.9 of the whole row; of what min-p alone would leave, 0.86, it is all.
  expect_kept({.top_p = 0.9, .min_p = 0.38}, {1, 3, 4});
  expect_kept({.top_p = 0.8, .top_k = 4, .min_p = 0.5}, {1, 4});
}

// 0.8 0.4 = 0.32 is above 0.3; at temperature 2 the ratio of the two is its root, 0.87.
TEST(sampler, min_p_is_of_the_probabilities_at_this_temperature) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  EXPECT_DOUBLE_EQ(shares({.min_p = 0.8}, logits, 1000)[1], 0);
  EXPECT_NEAR(shares({.temperature = 2, .min_p = 0.8}, logits, 2000)[1], 0.8660 / 1.8660, 1e-3);
}

// transformers' TopK, TopP and MinPLogitsWarper in the order of its generate(): tools/make_sampling_goldens.py.
TEST(sampler, it_keeps_what_transformers_keeps) {
  const Json golden = read_json(UCAS_SOURCE_DIR "/tests/goldens/sampling.json", 1 << 20);
  ASSERT_EQ(golden["cases"].size(), 27u);
  for (const Json& c : golden["cases"]) {
    SCOPED_TRACE(c.dump());
    const Json& s = c["setting"];
    const SamplingConfig config{.temperature = s.value("temperature", 1.0),
                                .top_p = s.value("top_p", 1.0),
                                .top_k = s.value("top_k", int64_t{0}),
                                .min_p = s.value("min_p", 0.0)};
    const auto logits = golden["rows"][c["row"].get<std::string>()].get<std::vector<float>>();
    std::vector<double> expected(logits.size());
    for (size_t i = 0; i < c["kept"].size(); ++i) {
      expected[c["kept"][i].get<size_t>()] = std::exp(c["logprob"][i].get<double>());
    }
    EXPECT_LT(largest_difference(shares(config, logits, 2000), expected), 1e-3);
    for (double u : {0.05, 0.6, 0.95}) {
      const SampledToken sampled = Sampler(config).sample(logits, u);
      ASSERT_GT(expected[static_cast<size_t>(sampled.token)], 0);
      EXPECT_NEAR(sampled.logprob, std::log(expected[static_cast<size_t>(sampled.token)]), 2e-5);
    }
  }
}

TEST(sampler, truncation_of_a_long_flat_row_equals_a_full_sort) {
  for (double top_p : {0.3, 0.9, 0.999}) {
    const auto logits = random_logits(2000, 13, 0.3);
    auto p = softmax(logits, 1);
    auto sorted = p;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double mass = 0, cut = 1;
    for (double x : sorted) {
      if (mass >= top_p) break;
      mass += cut = x;
    }
    const auto share = shares({.top_p = top_p}, logits, 2000);
    for (size_t v = 0; v < p.size(); ++v) {
      if (p[v] < cut * (1 - 1e-5)) {
        EXPECT_EQ(share[v], 0) << "id " << v << " is outside the nucleus of " << top_p;
      }
    }
    Sampler sampler({.top_p = top_p});
    const SampledToken sampled = sampler.sample(logits, 0.5);
    EXPECT_NEAR(sampled.logprob, std::log(p[static_cast<size_t>(sampled.token)] / mass), 1e-4);
  }
}

TEST(sampler, rows_that_are_not_finite_are_reported_not_sampled) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (double temperature : {0.0, 1.0}) {
      for (size_t at : {size_t{0}, size_t{17}, size_t{99}}) {
        auto logits = random_logits(100, 5);
        logits[at] = bad;
        EXPECT_EQ(Sampler({.temperature = temperature}).sample(logits, 0.5).token, -1);
      }
    }
  }
}

TEST(sampler, an_impossible_token_is_never_drawn_even_at_the_edges) {
  std::vector<float> logits(130, -200);
  logits[0] = -300;
  logits[64] = logits[90] = 0;
  logits[129] = -300;
  for (const SamplingConfig& config : {SamplingConfig{}, SamplingConfig{.top_p = 0.999999},
                                       SamplingConfig{.top_k = 100}, SamplingConfig{.min_p = 1e-30}}) {
    Sampler sampler(config);
    EXPECT_EQ(sampler.sample(logits, 0.0).token, 64);
    EXPECT_EQ(sampler.sample(logits, std::nextafter(1.0, 0.0)).token, 90);
  }
}

}  // namespace ucas
