#include "base/activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/log.h"

namespace ucas {
namespace {

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

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

TEST_F(watchdog, says_phase_and_work_once_and_again_after_twice_the_time) {
  set_phase("step 3, generating");
  const Watchdog dog(0.3, 0);
  const Doing doing("grading p7, sample 2, by code");
  const double began = now_seconds();
  while (lines().empty() && now_seconds() - began < 60) wait(0.02);
  ASSERT_FALSE(lines().empty());
  EXPECT_TRUE(lines()[0].starts_with("watchdog  nothing has moved for ")) << lines()[0];
  EXPECT_NE(lines()[0].find(": step 3, generating; grading p7, sample 2, by code for "), std::string::npos);
  while (lines().size() < 2 && now_seconds() - began < 60) wait(0.02);
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_GE(now_seconds() - began, 0.6);
}

TEST_F(watchdog, is_silent_while_something_moves_and_where_it_is_off) {
  const Watchdog dog(1.5, 0), off(0, 0);
  for (int i = 0; i < 40; ++i) {
    wait(0.05);
    progressed();
  }
  EXPECT_EQ(lines().size(), 0u);
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

TEST_F(watchdog, ends_the_program_only_where_it_was_asked_to) {
  set_log_sink(before_);
  EXPECT_EXIT(
      {
        const Watchdog dog(0, 0.3);
        set_phase("step 3, generating");
        wait(20);
      },
      ::testing::ExitedWithCode(74), "nothing has moved for .*: step 3, generating; the program ends");
}

}  // namespace
}  // namespace ucas
