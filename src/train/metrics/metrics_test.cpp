#include "train/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/batches.h"

namespace ucas {
namespace {

testing::Row row_of(float reward, size_t length) {
  return {0, reward, std::vector<float>(length), std::vector<float>(length)};
}

// Two responses of 2 tokens, the second masked.
Batch one_masked() {
  Batch batch = testing::make_batch({row_of(1, 2), row_of(0, 2)});
  batch.responses[1].trained = false;
  batch.entropy = {1, 2, 50, 60};
  batch.confidence = {10, 12, 90, 95};
  return batch;
}

TEST(step_metrics, of_tokens_are_of_those_that_are_trained) {
  const Batch batch = one_masked();
  StepMetrics m;
  record_batch(m, batch, std::vector<float>{0.5f, 0.25f, -9, -9}, 2, 20);
  EXPECT_EQ(m.get(metric::critic_advantages.mean), 0.375);
  EXPECT_EQ(m.get(metric::critic_advantages.min), 0.25);
  EXPECT_EQ(m.get(metric::actor_entropy), 1.5);
  EXPECT_EQ(m.get(metric::self_certainty.max), 12);
  EXPECT_NEAR(m.get(metric::policy_kl_uniform_p), 11 - std::log(20.0), 1e-12);
  EXPECT_NEAR(m.get(metric::policy_kl_p_uniform), std::log(20.0) - 1.5, 1e-12);
  // What was sampled is counted of all: a policy that writes on and on is seen by its lengths.
  EXPECT_EQ(m.get(metric::critic_rewards.mean), 0.5);
  EXPECT_EQ(m.get(metric::response_length_clip_ratio), 1);
}

TEST(step_metrics, where_all_is_masked_nothing_is_said_of_trained_tokens) {
  Batch batch = one_masked();
  batch.responses[0].trained = false;
  StepMetrics m;
  record_batch(m, batch, std::vector<float>(4), 2, 20);
  EXPECT_EQ(m.json().find("null"), std::string::npos) << m.json();
  EXPECT_TRUE(std::isnan(m.get(metric::actor_entropy)));
  EXPECT_EQ(m.get(metric::response_length.mean), 2);
}

// What was there before a training is no part of its peak.
TEST(step_metrics, the_peak_is_of_what_came_since_it_was_begun) {
  const auto touch = [](size_t mebibytes) {
    std::vector<char> memory(mebibytes << 20);
    for (size_t i = 0; i < memory.size(); i += 4096) memory[i] = 1;
    return memory[memory.size() / 2];
  };
  touch(400);
  begin_peak_resident();
  const double before = resident_gb();
  EXPECT_LT(peak_resident_gb(), before + 0.1);
  std::vector<char> held(200 << 20, 1);
  EXPECT_GT(peak_resident_gb(), before + 0.15);
  EXPECT_LT(peak_resident_gb(), before + 0.35);
}

}  // namespace
}  // namespace ucas
