#include "objective/advantage/returns.h"

#include <gtest/gtest.h>

#include "support/batches.h"

namespace ucas {
namespace {

// Responses of lengths 3, 2, 3, 1, rewards 1, 0, 0, 1 (and one empty), with the values of some critic.
Batch example() {
  auto row = [](int64_t group, float reward, size_t length) {
    return testing::Row{group, reward, std::vector<float>(length), std::vector<float>(length)};
  };
  Batch batch = testing::make_batch({row(0, 1, 3), row(0, 0, 2), row(1, 1, 0), row(1, 0, 3), row(1, 1, 1)});
  batch.signal("value") = {0.4f, 0.5f, 0.7f, 0.6f, 0.3f, 0.5f, 0.2f, 0.1f, 0.8f};
  return batch;
}

std::vector<double> run(const Batch& batch, double gamma, double lambda) {
  return gae(batch, token_rewards(batch), gamma, lambda);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t t = 0; t < got.size(); ++t) EXPECT_NEAR(got[t], want[t], tolerance) << t;
}

TEST(gae, without_discount_it_is_the_reward_less_the_value) {
  expect_near(run(example(), 1, 1), {0.6, 0.5, 0.3, -0.6, -0.3, -0.5, -0.2, -0.1, 0.2}, 1e-7);
}

TEST(gae, discounts_and_mixes_as_the_released_code_does) {
  expect_near(run(example(), 0.99, 0.95), {0.541879, 0.47515, 0.3, -0.58515, -0.3, -0.485445, -0.19505, -0.1, 0.2},
              1e-6);
}

TEST(gae, with_lambda_zero_each_token_has_its_own_error_only) {
  Batch batch = example();
  std::vector<double> A = run(batch, 0.9, 0);
  EXPECT_NEAR(A[0], 0.9 * 0.5 - 0.4, 1e-7);
  EXPECT_NEAR(A[2], 1 - 0.7, 1e-7);
  batch.signal("value")[2] = 5;  // two tokens later: not seen
  EXPECT_EQ(run(batch, 0.9, 0)[0], A[0]);
}

TEST(gae, nothing_crosses_from_one_response_to_the_next) {
  Batch batch = example(), other = example();
  other.responses[3].reward = -7;  // the fourth response, tokens 5 .. 7
  for (size_t t = 5; t < 8; ++t) other.signal("value")[t] += 3;
  std::vector<double> a = run(batch, 0.99, 0.95), b = run(other, 0.99, 0.95);
  for (size_t t : {0, 1, 2, 3, 4, 8}) EXPECT_EQ(a[t], b[t]) << t;
  EXPECT_NE(a[5], b[5]);
}

TEST(gae, a_penalty_inside_the_response_counts_from_its_token_on) {
  Batch batch = example();
  batch.reward_kl = {0, 0.25f, 0, 0, 0, 0, 0, 0, 0};
  batch.responses[0].kl_penalty = 0.25f;  // reward is what is left
  batch.responses[0].reward = 0.75f;
  expect_near(run(batch, 1, 1), {0.35, 0.25, 0.3, -0.6, -0.3, -0.5, -0.2, -0.1, 0.2}, 1e-7);
}

}  // namespace
}  // namespace ucas
