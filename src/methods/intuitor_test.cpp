#include <gtest/gtest.h>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::group_of;
using testing::shape;
using testing::Shaped;

TEST(intuitor_method, self_certainty_with_or_without_ln_v_gives_the_same_advantages) {
  Batch C = group_of({0, 0, 1, 0}, {2, 3, 0, 1}), kl = C;
  for (float& c : kl.confidence) c -= 11.9312f;  // ln 152,064
  Shaped of_C = shape(C, "intuitor"), of_kl = shape(kl, "intuitor");
  for (size_t t = 0; t < of_C.advantage.size(); ++t) EXPECT_NEAR(of_C.advantage[t], of_kl.advantage[t], 1e-6);
  EXPECT_GT(of_C.advantage.back(), 0.5f);
  EXPECT_LT(of_C.advantage.front(), -0.5f);
}

TEST(intuitor_method, never_looks_at_an_answer) {
  EXPECT_FALSE(make_method("intuitor")->needs().labels);
  Batch batch = group_of({0, 0, 1, 0}, {2, 3, 1, 1});
  Shaped before = shape(batch, "intuitor");
  for (Response& o : batch.responses) o.reward = o.score = 1 - o.reward;
  EXPECT_EQ(shape(batch, "intuitor").advantage, before.advantage);
  EXPECT_EQ(before.rows["u"], (std::vector<float>{12.5, 15, 16, 18}));
}

TEST(intuitor_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(testing::order_never_matters("intuitor"));
}

}  // namespace
}  // namespace ucas
