#include "train/optimizer/skipped_updates.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/terminal/log.h"

namespace ucas {
namespace {

// What was logged while it lived.
struct Logged {
  std::vector<std::string> said;
  LogSink before = set_log_sink([this](LogLevel, const std::string& message) { said.push_back(message); });
  ~Logged() { set_log_sink(before); }
};

TEST(skipped_updates, the_third_in_a_row_is_an_error_that_says_what_to_do) {
  Logged logged;
  SkippedUpdates skipped;
  skipped.note(false, "step 4", "the critic's gradient", "do this");
  skipped.note(false, "step 5", "the critic's gradient", "do this");
  EXPECT_EQ(logged.said.back(), "step 5: the critic's gradient is not finite; update skipped (2 so far)");
  try {
    skipped.note(false, "step 6", "the critic's gradient", "do this");
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "numeric");
    EXPECT_EQ(error.exit_code(), kNumeric);
    EXPECT_STREQ(error.what(), "step 6: the critic's gradient was not finite in 3 updates in a row; do this");
  }
}

TEST(skipped_updates, one_that_is_applied_ends_the_row_but_not_the_count) {
  Logged logged;
  SkippedUpdates skipped;
  for (int i = 0; i < 5; ++i) {
    skipped.note(false, "step 1", "it", "");
    skipped.note(false, "step 1", "it", "");
    skipped.note(true, "step 1", "it", "");
  }
  EXPECT_EQ(skipped.total, 10);
  EXPECT_EQ(skipped.in_a_row, 0);
  EXPECT_EQ(logged.said.size(), 10u);
}

TEST(skipped_updates, an_interrupted_run_counts_on) {
  Logged logged;
  SkippedUpdates before, after;
  before.note(false, "step 1", "it", "");
  before.note(false, "step 1", "it", "");
  after.restore(before.state());
  EXPECT_EQ(after.total, 2);
  EXPECT_THROW(after.note(false, "step 2", "it", ""), Error);
  after.restore({});  // a checkpoint of earlier versions
  EXPECT_EQ(after.total, 0);
}

}  // namespace
}  // namespace ucas
