#include "report/progress/train_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "report/alarms.h"
#include "report/diagnosis.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

Metrics metrics_of(int64_t step) {
  auto s = static_cast<double>(step);
  Metrics m = {{"training/global_step", s},      {"critic/score/mean", 0.1 * s}, {"actor/entropy", 2.0 / (1 + s)},
               {"response_length/mean", 20 + s}, {"actor/grad_norm", 0.5},       {"rollout/logprob_diff_max", 1.5e-6},
               {"train/dead_groups", 0.25}};
  if (step % 2 == 0) m.insert(m.end(), {{"val-core/a/acc/mean@1", 0.25}, {"val-core/b/acc/mean@1", 0.75}});
  return m;
}

TEST(train_view, shows_where_a_run_stands) {
  TrainView view;
  view.begin({"UCAS", "runs/ucas-tiny", 0, 16});
  for (int64_t step = 1; step <= 8; ++step) view.add(step, metrics_of(step));
  EXPECT_EQ(view.done(), 8);
  EXPECT_EQ(view.total(), 16);
  EXPECT_EQ(view.numbers(), "  reward 0.800  H 0.222  len 28.0  grad 0.50  mismatch 0.000002  val 0.500");
  EXPECT_TRUE(view.alarms().empty());
}

TEST(train_view, where_the_passes_decide_the_prompts_say_how_far_the_run_is) {
  TrainView view;
  TrainStart start{"UCAS", "runs/x", 0, 50};
  start.total_prompts = 400;
  view.begin(start);
  for (int64_t step = 1; step <= 4; ++step) {  // 25 prompts a step, not the 8 that would do
    Metrics m = metrics_of(step);
    m.emplace_back("training/prompts", 25.0 * static_cast<double>(step));
    view.add(step, m);
  }
  EXPECT_EQ(view.done(), 100);
  EXPECT_EQ(view.total(), 400);
  EXPECT_TRUE(view.numbers().starts_with("  step 4  ")) << view.numbers();
}

// Twelve steps of which `value` says one number, the others healthy.
struct TestedCourse {
  const char* key;
  std::function<double(int step)> value;
};

class ThreeReaders : public ::testing::Test {
 protected:
  void run(const TestedCourse& course) {
    const std::pair<const char*, double> healthy[] = {{"critic/score/mean", 0.4},
                                                      {"train/accuracy", 0.4},
                                                      {"actor/entropy", 0.6},
                                                      {"train/dead_groups", 0.1},
                                                      {"response_length/clip_ratio", 0},
                                                      {"verifier/unequal_share", 0.5},
                                                      {"verifier/unparseable_share", 0.05},
                                                      {"rollout/logprob_diff_max", 0},
                                                      {"train/skipped_steps", 0},
                                                      {"train/empty_steps", 0}};
    TrainView view;
    view.begin({.title = "GRPO", .run = "none", .step = 0, .total_steps = 12});
    std::string lines;
    for (int step = 1; step <= 12; ++step) {
      Metrics row;
      for (const auto& [key, value] : healthy)
        row.emplace_back(key, key == std::string(course.key) ? course.value(step) : value);
      view.add(step, row);
      lines += str("{\"training/global_step\": ", step);
      for (const auto& [key, value] : row) lines += str(", \"", key, "\": ", value);
      lines += "}\n";
    }
    write_file(path_join(home_.path(), "steps.jsonl"), lines);
    const RunRecord record = read_run(home_.path());
    const std::vector<RunGroup> groups = group_runs({&record, 1});
    for (const FoundSign& sign : view.alarms()) terminal.insert(sign.row->title);
    for (const Alarm& alarm : find_alarms(groups, {}).alarms) {
      if (alarm.serious) report.insert(alarm.title);
    }
    for (const Cause& cause : diagnose_run(record, {}).found) {
      if (!cause.sign.note) diagnosis.insert(cause.sign.row->title);
    }
  }
  testing::TemporaryDirectory home_;
  std::set<std::string> terminal, report, diagnosis;
};

class OneAlarm : public ThreeReaders,
                 public ::testing::WithParamInterface<std::tuple<const char*, TestedCourse, bool>> {};

TEST_P(OneAlarm, is_named_alike_by_terminal_report_and_diagnosis) {
  const auto& [title, course, ended] = GetParam();
  run(course);
  const std::set<std::string> named = {title}, none;
  for (const auto* named_by : {&terminal, &report, &diagnosis}) EXPECT_EQ(*named_by, ended ? none : named);
}

const auto late = [](double bad, double good) { return [=](int step) { return step > 8 ? bad : good; }; };
const auto early = [](double bad, double good) { return [=](int step) { return step <= 3 ? bad : good; }; };

INSTANTIATE_TEST_SUITE_P(
    of_each_kind, OneAlarm,
    ::testing::Values(
        std::tuple{"Entropy collapse", TestedCourse{"actor/entropy", late(0.01, 0.6)}, false},
        std::tuple{"Entropy collapse",
                   TestedCourse{"actor/entropy", [](int step) { return step == 5 || step == 6 ? 0.01 : 0.6; }}, true},
        std::tuple{"Dead groups", TestedCourse{"train/dead_groups", late(1.0, 0.4)}, false},
        std::tuple{"Dead groups", TestedCourse{"train/dead_groups", early(0.9, 0.1)}, true},
        std::tuple{"No right answer", TestedCourse{"train/accuracy", [](int step) { return step > 6 ? 0 : 0.4; }},
                   false},
        std::tuple{"No right answer", TestedCourse{"train/accuracy", [](int step) { return step < 7 ? 0 : 0.01; }},
                   true},
        std::tuple{"Length clipping", TestedCourse{"response_length/clip_ratio", late(0.5, 0)}, false},
        std::tuple{"Length clipping", TestedCourse{"response_length/clip_ratio", early(0.2, 0)}, true},
        std::tuple{"Unparseable answers", TestedCourse{"verifier/unparseable_share", late(0.6, 0)}, false},
        std::tuple{"Unparseable answers", TestedCourse{"verifier/unparseable_share", early(0.3, 0)}, true},
        std::tuple{"Sampler/trainer mismatch", TestedCourse{"rollout/logprob_diff_max", late(0.01, 0)}, false},
        std::tuple{"Unstable updates", TestedCourse{"train/skipped_steps", late(2, 0)}, false},
        std::tuple{"Dead groups", TestedCourse{"train/empty_steps", late(1, 0)}, false}));

// What plain progress says of a run by its steps' unparseable shares.
std::vector<std::string> said(const std::vector<double>& unparseable) {
  std::vector<std::string> lines;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { lines.push_back(text); });
  auto observer = make_train_observer(ProgressMode::plain);
  observer->begin({"GRPO", "runs/none", 0, static_cast<int64_t>(unparseable.size())});
  for (size_t i = 0; i < unparseable.size(); ++i) {
    std::vector<std::pair<std::string, double>> metrics = {{"train/accuracy", 0.5},
                                                           {"verifier/unparseable_share", unparseable[i]}};
    observer->step(static_cast<int64_t>(i) + 1, metrics);
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

TEST(train_progress, an_alarm_that_ended_is_said_when_it_ends) {
  std::vector<std::string> lines = said({0.6, 0, 0, 0, 0, 0, 0});
  ASSERT_EQ(lines.size(), 2u) << join(lines, "\n");
  EXPECT_TRUE(lines[0].starts_with("alarm  Unparseable answers from step 1: 60.0 % of responses")) << lines[0];
  EXPECT_EQ(lines[1], "alarm  Unparseable answers is over, at step 6");  // 0.6 / 6 is not above a tenth
  lines = said({0.6, 0, 0, 0, 0, 0, 0.9});                               // and begins again
  ASSERT_EQ(lines.size(), 4u) << join(lines, "\n");
  EXPECT_TRUE(lines[2].starts_with("alarm  Unparseable answers from step 7")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("alarm  Unparseable answers: ")) << lines[3];
}

// The last lines of a run whose validations are these, at steps 0, 4, 8 ..
std::vector<std::string> last_lines(const std::vector<double>& validations) {
  std::vector<std::string> lines;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { lines.push_back(text); });
  auto observer = make_train_observer(ProgressMode::plain);
  observer->begin({"DAPO", "runs/none", 0, 4 * std::ssize(validations)});
  for (size_t i = 0; i < validations.size(); ++i) {
    const Metrics row = {{"val-core/test/acc/mean@1", validations[i]}, {"val-aux/test/problems", 80}};
    observer->step(4 * static_cast<int64_t>(i), row);
  }
  observer->end();
  set_log_sink(std::move(before));
  return lines;
}

TEST(train_progress, a_validation_below_where_it_began_is_an_alarm_with_its_step_and_step_0_is_said_to_be_best) {
  for (const std::vector<double>& fallen : {std::vector{0.5, 0.25, 0.25}, {0.538, 0.3, 0.35, 0.25, 0.3, 0.212}}) {
    const std::vector<std::string> lines = last_lines(fallen);
    const auto alarm =
        std::ranges::find_if(lines, [](const auto& line) { return line.starts_with("alarm  Validation fell from"); });
    ASSERT_NE(alarm, lines.end()) << join(lines, "\n");
    EXPECT_NE(lines[lines.size() - 2].find("since step 4"), std::string::npos) << join(lines, "\n");
    EXPECT_TRUE(lines.back().starts_with("step 0 was best: validation accuracy was 5")) << lines.back();
  }
  EXPECT_FALSE(last_lines({0.25, 0.5, 0.75}).back().starts_with("step 0"));
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
    observer->step(step, row);
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
  observer->step(7, row);
  observer->end();
  set_log_sink(std::move(before));
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines[0].starts_with("alarm  Unstable updates from step 7")) << lines[0];
  EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& line) { return line.starts_with("sft  7/12 updates  "); }))
      << join(lines, "\n");
}

}  // namespace
}  // namespace ucas
