#include "progress/train_progress.h"

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

TrainSample sample_of(int64_t step) { return {step, "What is 1 + 1?\n", "Two.\nSo 2", "equal", "2", 1, 9, true}; }

// Eight of sixteen steps, one every two seconds.
TrainView after_eight() {
  TrainView view;
  view.begin({"UCAS", "runs/ucas-tiny", 0, 16}, 100);
  for (int64_t step = 1; step <= 8; ++step) {
    TrainSample sample = sample_of(step);
    view.add(step, metrics_of(step), &sample, 100 + 2.0 * static_cast<double>(step));
  }
  view.detail = "generating";
  return view;
}

std::vector<std::string> shown(const TrainView& view, TerminalSize size, double now, bool utf8 = false) {
  std::vector<std::string> texts;
  for (const InkedLine& line : view.lines(size, utf8, now)) {
    std::string text = plain_text(line);
    texts.push_back(text.substr(0, text.find_last_not_of(' ') + 1));
  }
  return texts;
}

TEST(train_view, shows_where_a_run_stands) {
  std::vector<std::string> expected = {
      " UCAS  runs/ucas-tiny",
      " step 8/16  ###########............  50 %   2.0 s/step   elapsed 16s   ETA 16s   generating",
      " reward                                _.-~=+*#   validation                                ____",
      " numbers    reward 0.800  H 0.222  len 28.0  grad 0.50  mismatch 0.000002  val 0.500",
      " sample     right, read as 2, 9 tokens, reward 1.00: Two.\\nSo 2",
      " alarms     none",
  };
  EXPECT_EQ(shown(after_eight(), {100, 40}, 116), expected);
}

TEST(train_view, shows_where_fine_tuning_stands_by_its_own_numbers) {
  TrainView view;
  view.begin({"sft", "out", 2, 8, 0, 0, true}, 100);
  for (int64_t update = 3; update <= 6; ++update) {
    const double u = static_cast<double>(update);
    view.add(update, Metrics{{"loss", 6 - u / 2}, {"lr", 1e-5 * u}, {"grad_norm", 0.5}, {"tokens", 480}}, nullptr,
             100 + 4 * (u - 2));
  }
  const std::vector<std::string> expected = {
      " sft  out",
      " update 6/8  #################......  75 %   4.0 s/update   elapsed 16s   ETA 8.0s",
      " loss                                      #+-_   gradient                                  ____",
      " numbers    loss 3.0000  lr 6.0e-05",
      " alarms     none",
  };
  EXPECT_EQ(shown(view, {100, 40}, 116), expected);
}

TEST(train_view, no_line_is_as_wide_as_the_window_and_no_block_as_high) {
  TrainView view = after_eight();
  TrainSample sample = sample_of(9);
  sample.response = std::string(5000, '\xe4') + "\xe4\xb8\xad\xe4\xb8\xad" + std::string(5000, 'x') + "\033[2J";
  view.add(9, metrics_of(9), &sample, 130);
  for (bool utf8 : {false, true}) {
    for (size_t columns = 1; columns < 220; ++columns) {
      for (size_t rows : {2, 5, 9, 40}) {
        std::vector<std::string> lines = shown(view, {columns, rows}, 131, utf8);
        EXPECT_LT(lines.size(), rows);
        for (const std::string& line : lines) {
          EXPECT_LE(cells(line) + 1, std::max<size_t>(2, columns)) << line;
          EXPECT_EQ(line.find('\033'), std::string::npos);
        }
      }
    }
  }
}

TEST(train_view, text_of_the_model_is_escaped) {
  TrainView view;
  view.begin({"UCAS", "runs/x", 0, 4}, 0);
  TrainSample sample = {1, "q\033]0;title\007", "\033[31m\xc2\x9bK\r\b", "unequal", "\033c", 0, 3, false};
  view.add(1, metrics_of(1), &sample, 1);
  std::string all = join(shown(view, {120, 40}, 1, true), "\n");
  for (char c : all) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  EXPECT_NE(all.find("\\x1b[31m\\xc2\\x9bK"), std::string::npos) << all;
  EXPECT_NE(all.find("wrong, read as \\x1bc, 3 tokens, cut at the limit, reward 0"), std::string::npos) << all;
}

TEST(train_view, where_the_passes_decide_the_prompts_say_how_far_the_run_is) {
  TrainView view;
  TrainStart start{"UCAS", "runs/x", 0, 50};
  start.total_prompts = 400;
  view.begin(start, 0);
  for (int64_t step = 1; step <= 4; ++step) {  // 25 prompts a step, not the 8 that would do
    Metrics m = metrics_of(step);
    m.emplace_back("training/prompts", 25.0 * static_cast<double>(step));
    view.add(step, m, nullptr, 2.0 * static_cast<double>(step));
  }
  std::string line = shown(view, {100, 40}, 8)[1];
  EXPECT_NE(line.find(" step 4  "), std::string::npos) << line;
  EXPECT_NE(line.find("25 %   2.0 s/step   elapsed 8.0s   ETA 24s"), std::string::npos) << line;
}

TEST(train_view, alarms_are_those_of_the_report) {
  TrainView view = after_eight();
  Metrics m = metrics_of(9);
  for (auto& [name, value] : m) value = name == "rollout/logprob_diff_max" ? 0.02 : value;
  view.add(9, m, nullptr, 118);
  std::vector<std::string> lines = shown(view, {200, 40}, 118);
  EXPECT_EQ(
      lines.back(),
      " alarms     Sampler/trainer mismatch: log-probs of one token differ by up to 0.020 (step 9); beyond 0.001 in 1 "
      "of 9 steps");
  m.emplace_back("actor/pg_loss", std::nan(""));
  view.add(10, m, nullptr, 120);
  EXPECT_NE(shown(view, {200, 40}, 118).back().find(" alarms     (+1)  "), std::string::npos);
}

TEST(train_view, the_pace_is_that_of_the_latest_steps) {
  TrainView view;
  view.begin({"UCAS", "runs/x", 50, 100}, 0);
  double now = 0;
  for (int64_t step = 51; step <= 60; ++step) view.add(step, metrics_of(step), nullptr, now += 100);
  for (int64_t step = 61; step <= 75; ++step) view.add(step, metrics_of(step), nullptr, now += 1);
  EXPECT_NE(shown(view, {100, 40}, now)[1].find("1.0 s/step   elapsed 16m55s   ETA 25s"), std::string::npos)
      << shown(view, {100, 40}, now)[1];
  view.ended = true;
  EXPECT_EQ(shown(view, {100, 40}, now)[1].find("ETA"), std::string::npos);
}

TEST(train_view, before_the_first_step_there_is_nothing_to_say_and_nothing_wrong) {
  TrainView view;
  view.begin({"UCAS", "runs/x", 0, 16}, 0);
  std::vector<std::string> lines = shown(view, {100, 40}, 3);
  EXPECT_EQ(lines[1], " step 0/16  .......................  0 %   elapsed 3.0s");
  EXPECT_EQ(lines[4], " sample     -");
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
    view.begin({.title = "GRPO", .run = "none", .step = 0, .total_steps = 12}, 0);
    std::string lines;
    for (int step = 1; step <= 12; ++step) {
      Metrics row;
      for (const auto& [key, value] : healthy)
        row.emplace_back(key, key == std::string(course.key) ? course.value(step) : value);
      view.add(step, row, nullptr, step);
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
  for (const auto* told : {&terminal, &report, &diagnosis}) EXPECT_EQ(*told, ended ? none : named);
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
    observer->step(4 * static_cast<int64_t>(i), row, nullptr);
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
