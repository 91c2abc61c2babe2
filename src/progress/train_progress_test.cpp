#include "progress/train_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {
namespace {

// What plain progress says of a run, told its steps' unparseable shares.
std::vector<std::string> said(const std::vector<double>& unparseable) {
  std::vector<std::string> lines;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { lines.push_back(text); });
  auto observer = make_train_observer(ProgressMode::plain);
  observer->begin({"GRPO", "runs/none", 0, static_cast<int64_t>(unparseable.size())});
  for (size_t i = 0; i < unparseable.size(); ++i) {
    std::vector<std::pair<std::string, double>> metrics = {{"train/accuracy", 0.5},
                                                           {"verifier/unparseable_share", unparseable[i]}};
    observer->step(static_cast<int64_t>(i) + 1, metrics, nullptr);
  }
  observer->end();
  set_log_sink(std::move(before));
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("alarm"); });
  return lines;
}

TEST(train_progress, plain_lines_say_an_alarm_once_when_it_begins_and_list_it_at_the_end) {
  std::vector<std::string> lines = said({0, 0, 0.6, 0.7, 0.8});
  ASSERT_EQ(lines.size(), 2u) << join(lines, "\n");
  EXPECT_TRUE(lines[0].starts_with("alarm  Unparseable answers from step 3: 20.0 % of responses")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("alarm  Unparseable answers: 42.0 % of responses")) << lines[1];
  EXPECT_NE(lines[1].find("Check the template"), std::string::npos) << lines[1];  // with its cause
  EXPECT_TRUE(said({0, 0, 0}).empty());
}

TEST(train_progress, an_alarm_that_ended_is_said_when_it_ends_and_at_the_end_of_the_run) {
  std::vector<std::string> lines = said({0.6, 0, 0, 0, 0, 0, 0});
  ASSERT_EQ(lines.size(), 3u) << join(lines, "\n");
  EXPECT_TRUE(lines[0].starts_with("alarm  Unparseable answers from step 1: 60.0 % of responses")) << lines[0];
  EXPECT_EQ(lines[1], "alarm  Unparseable answers is over, at step 6");  // 0.6 / 6 is not above a tenth
  EXPECT_EQ(lines[2],
            "alarm  Unparseable answers, over: from step 1 to step 5 up to 60.0 % of responses hold no answer that "
            "could be read");
  lines = said({0.6, 0, 0, 0, 0, 0, 0.9});  // and begins again
  ASSERT_EQ(lines.size(), 4u) << join(lines, "\n");
  EXPECT_TRUE(lines[2].starts_with("alarm  Unparseable answers from step 7")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("alarm  Unparseable answers: ")) << lines[3];
}

// No line comes within five seconds; the last one comes all the same.
TEST(train_progress, a_run_of_a_moment_says_reward_and_accuracy_of_its_last_step) {
  std::vector<std::string> lines;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { lines.push_back(text); });
  auto observer = make_train_observer(ProgressMode::plain);
  observer->begin({"GRPO", "runs/none", 0, 2});
  for (int step : {1, 2}) {
    const std::vector<std::pair<std::string, double>> row = {
        {"critic/score/mean", 0.25 * step}, {"train/accuracy", 0.1 * step}, {"actor/entropy", 0.5}};
    observer->step(step, row, nullptr);
  }
  observer->end();
  set_log_sink(std::move(before));
  ASSERT_EQ(lines.size(), 1u) << join(lines, "\n");
  EXPECT_TRUE(lines[0].starts_with("GRPO  2/2 steps")) << lines[0];
  EXPECT_NE(lines[0].find("  reward 0.500  acc 0.200  H 0.500"), std::string::npos) << lines[0];
}

TEST(train_progress, plain_lines_of_fine_tuning_count_updates_and_say_loss_and_rate) {
  std::vector<std::string> lines;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { lines.push_back(text); });
  auto observer = make_train_observer(ProgressMode::plain);
  observer->begin({"sft", "out", 6, 12, 0, 0, true});  // goes on after the sixth
  const std::vector<std::pair<std::string, double>> row = {{"loss", 1.25}, {"lr", 5e-5}, {"grad_norm", std::nan("")}};
  observer->step(7, row, nullptr);
  observer->end();
  set_log_sink(std::move(before));
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines[0].starts_with("alarm  Unstable updates from step 7")) << lines[0];
  EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& line) { return line.starts_with("sft  7/12 updates  "); }))
      << join(lines, "\n");
}

}  // namespace
}  // namespace ucas
