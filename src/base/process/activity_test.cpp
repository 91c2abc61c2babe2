#include "base/process/activity.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/terminal/log.h"
#include "support/patience.h"

namespace ucas {
namespace {

class watchdog : public ::testing::Test {
 protected:
  watchdog()
      : before_(set_log_sink([this](LogLevel, const std::string& line) {
          const std::lock_guard lock(guard_);
          lines_.push_back(line);
        })) {}
  ~watchdog() override { set_log_sink(before_); }
  std::vector<std::string> lines() {
    const std::lock_guard lock(guard_);
    return lines_;
  }
  std::mutex guard_;
  std::vector<std::string> lines_;
  LogSink before_;
};

TEST_F(watchdog, says_phase_and_work_of_what_does_not_move) {
  set_phase("step 3, generating");
  const Watchdog dog(0.1);
  const Doing doing("grading p7, sample 2, by code");
  testing::wait_until([&] { return !lines().empty(); });
  EXPECT_TRUE(lines()[0].starts_with("watchdog  nothing has moved for ")) << lines()[0];
  EXPECT_NE(lines()[0].find(": step 3, generating; grading p7, sample 2, by code for "), std::string::npos);
}

TEST(stillness, a_word_is_due_once_and_again_after_twice_the_time) {
  Stillness of_ten(10);
  for (const auto& [still, due] : {std::pair{0.0, false},
                                   {9.9, false},
                                   {10.1, true},
                                   {15.0, false},
                                   {19.9, false},
                                   {20.0, true},
                                   {39.0, false},
                                   {41.0, true},
                                   {79.0, false}}) {
    EXPECT_EQ(of_ten.after(still), due) << still;
  }
  EXPECT_FALSE(of_ten.after(0.1)) << "something moved";
  EXPECT_TRUE(of_ten.after(10.1));
}

TEST(stillness, none_is_due_while_something_moves) {
  Stillness of_ten(10);
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(of_ten.after(9));
}

TEST_F(watchdog, work_that_ended_is_not_named_and_of_many_the_oldest_are) {
  set_phase("grading");
  {
    const Doing gone("gone");
  }
  const Doing a("a"), b("b"), c("c"), d("d");
  Doing e("e");
  e.say("f");
  const std::string what = activity().what;
  EXPECT_EQ(what.find("gone"), std::string::npos);
  EXPECT_NE(what.find("grading; a for "), std::string::npos) << what;
  EXPECT_TRUE(what.ends_with("; and 2 more")) << what;
}

}  // namespace
}  // namespace ucas
