#include "study/engine/matched.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

TEST(matched, the_lowest_final_validation_is_the_mark_and_the_later_of_two_equally_near_is_taken) {
  const ValidatedSteps slow{{20, 40, 60}, {0.2, 0.3, 0.5}}, fast{{20, 40, 60}, {0.4, 0.6, 0.9}};
  EXPECT_EQ(matched_steps({slow, fast}), (std::vector<int64_t>{60, 40}));  // 0.4 and 0.6 are as far from 0.5
  EXPECT_EQ(matched_steps({fast}), (std::vector<int64_t>{60}));
}

TEST(matched, a_run_that_falls_again_is_matched_where_it_was_as_low) {
  const ValidatedSteps falls{{20, 40, 60}, {0.3, 0.8, 0.31}}, rises{{20, 40, 60}, {0.1, 0.3, 0.7}};
  EXPECT_EQ(matched_steps({falls, rises}), (std::vector<int64_t>{60, 40}));
}

TEST(matched, a_run_without_validated_checkpoints_is_refused) {
  EXPECT_THROW(matched_steps({ValidatedSteps{}}), Error);
}

}  // namespace
}  // namespace ucas
