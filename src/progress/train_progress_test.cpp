#include "progress/train_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/log.h"
#include "base/str.h"

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
  EXPECT_EQ(said({0.6, 0, 0, 0, 0, 0, 0}).size(), 1u);  // it has passed by the end
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
  EXPECT_TRUE(lines[0].starts_with("alarm  Numbers that are not finite from step 7")) << lines[0];
  EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& line) { return line.starts_with("sft  7/12 updates  "); }))
      << join(lines, "\n");
}

}  // namespace
}  // namespace ucas
