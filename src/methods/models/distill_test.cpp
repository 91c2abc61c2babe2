// On-policy distillation: what a teacher's log-probs make of a response.
#include <gtest/gtest.h>

#include "base/error.h"
#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::compute_advantages;
using testing::number;

// Two responses to a prompt, of two and one tokens, the first right.
Batch scored() {
  Batch batch = testing::group_of({1, 0}, {2, 1});
  batch.old_logprob = {-1, -0.5f, -2};
  batch.signal("teacher_logprob") = {-0.25f, -3, -2};
  return batch;
}

TEST(distill_method, a_token_pays_for_what_the_teacher_would_not_have_drawn) {
  testing::Advantages s = compute_advantages(scored(), "distill");
  EXPECT_EQ(s.advantage, (std::vector<float>{0.75f, -2.5f, 0}));
  EXPECT_EQ(s.rows.at("k"), (std::vector<float>{-0.75f, 2.5f, 0}));
  EXPECT_DOUBLE_EQ(s.metrics.at("distill/reverse_kl"), 1.75 / 3);
  EXPECT_EQ(compute_advantages(scored(), "distill", "", {number("kl_weight", 0.5)}).advantage,
            (std::vector<float>{0.375f, -1.25f, 0}));
}

TEST(distill_method, the_reward_can_stand_beside_it) {
  std::vector<float> grpo = compute_advantages(scored(), "grpo").advantage,
                     kl = compute_advantages(scored(), "distill").advantage;
  std::vector<float> both = compute_advantages(scored(), "distill", "reward").advantage;
  for (size_t t = 0; t < both.size(); ++t) EXPECT_FLOAT_EQ(both[t], kl[t] + grpo[t]);
  std::vector<float> alone =
      compute_advantages(scored(), "distill", "", {number("kl_weight", 0), number("reward_weight", 1)}).advantage;
  EXPECT_EQ(alone, grpo);
}

TEST(distill_method, without_the_reward_no_answer_is_asked_for) {
  EXPECT_FALSE(make_method("distill")->needs().labels);
  EXPECT_TRUE(make_method("distill", "reward")->needs().labels);
  Batch batch = scored();
  for (Response& o : batch.responses) o.reward = 5;
  EXPECT_EQ(compute_advantages(batch, "distill").advantage, compute_advantages(scored(), "distill").advantage);
}

TEST(distill_method, a_batch_without_the_teacher_and_weights_of_nothing_are_refused) {
  Batch batch = scored();
  batch.signal("teacher_logprob").clear();
  EXPECT_THROW(compute_advantages(batch, "distill"), Error);
  EXPECT_THROW(compute_advantages(scored(), "distill", "", {number("kl_weight", 0)}), Error);
}

// The expected advantage under the policy's own draws is -KL(pi || pi_T), and it is 0 only at the teacher.
TEST(distill_method, its_mean_over_what_the_policy_draws_is_minus_the_reverse_kl) {
  const std::vector<double> pi = {0.5, 0.3, 0.2}, teacher = {0.7, 0.2, 0.1};
  Batch batch = testing::group_of({0, 0, 0}, {1, 1, 1});
  double kl = 0, mean = 0;
  for (size_t v = 0; v < pi.size(); ++v) {
    batch.old_logprob.push_back(static_cast<float>(std::log(pi[v])));
    batch.signal("teacher_logprob").push_back(static_cast<float>(std::log(teacher[v])));
    kl += pi[v] * std::log(pi[v] / teacher[v]);
  }
  std::vector<float> A = compute_advantages(batch, "distill").advantage;
  for (size_t v = 0; v < pi.size(); ++v) mean += pi[v] * A[v];
  EXPECT_NEAR(mean, -kl, 1e-6);
}

}  // namespace
}  // namespace ucas
