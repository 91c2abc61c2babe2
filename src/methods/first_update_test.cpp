#include "methods/apply.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/str.h"
#include "methods/registry.h"
#include "support/random_batches.h"

namespace ucas {
namespace {

Batch some_batch(uint64_t seed) {
  Rng rng(seed, 1);
  return testing::pack(testing::random_groups(rng, {.groups = 5, .most_rows = 6, .most_tokens = 9}));
}

std::vector<float> advantages_by(const Method& method, const Batch& batch) {
  std::vector<float> advantage(batch.token.size());
  Recording recording;
  method.advantages(batch, advantage, recording);
  return advantage;
}

TEST(first_update, of_a_method_that_leaves_the_loss_alone_it_is_the_advantage) {
  const Batch batch = some_batch(4);
  for (const char* name : {"grpo", "dapo", "ucas", "a3po", "steer", "opo", "maxrl"}) {
    auto method = make_method(name);
    const std::vector<float> A = advantages_by(*method, batch), asked = first_update(*method, batch, A);
    for (size_t t = 0; t < A.size(); ++t) EXPECT_FLOAT_EQ(asked[t], A[t]) << name;
  }
}

TEST(first_update, of_a_method_that_selects_it_is_what_the_selection_leaves) {
  const Batch batch = some_batch(5);
  auto forking = make_method("forking_tokens"), dapo = make_method("dapo");
  const std::vector<float> A = advantages_by(*dapo, batch);
  const std::vector<float> asked = first_update(*forking, batch, advantages_by(*forking, batch));
  size_t kept = 0, nonzero = 0;
  for (size_t t = 0; t < A.size(); ++t) {
    EXPECT_TRUE(asked[t] == 0 || asked[t] == A[t]);
    kept += asked[t] != 0;
    nonzero += A[t] != 0;
  }
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, nonzero);
}

TEST(first_update, masked_responses_ask_for_nothing_and_every_method_for_something_finite) {
  Batch batch = some_batch(6);
  batch.responses[1].trained = false;
  for (const MethodRow& row : method_rows()) {
    auto method = row.make();
    const std::vector<float> asked = first_update(*method, batch, advantages_by(*method, batch));
    for (size_t t = 0; t < asked.size(); ++t) ASSERT_TRUE(std::isfinite(asked[t])) << row.name;
    const Response& o = batch.responses[1];
    for (int64_t t = o.first; t < o.first + o.length; ++t) EXPECT_EQ(asked[t], 0) << row.name;
  }
}

}  // namespace
}  // namespace ucas
