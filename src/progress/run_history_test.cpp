#include "progress/run_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "base/files/file.h"
#include "base/str.h"
#include "report/alarms.h"
#include "report/diagnosis.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

struct Told {
  std::set<std::string> standing, over;
};

Told of_alarms(const std::vector<FoundSign>& alarms, const std::vector<FoundSign>& over) {
  Told told;
  for (const FoundSign& sign : alarms) told.standing.insert(sign.row->title);
  for (const FoundSign& sign : over) told.over.insert(sign.row->title);
  return told;
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
    RunHistory history;
    history.begin({.title = "GRPO", .run = "none", .step = 0, .total_steps = 12});
    std::string lines;
    for (int step = 1; step <= 12; ++step) {
      std::vector<std::pair<std::string, double>> row;
      for (const auto& [key, value] : healthy)
        row.emplace_back(key, key == std::string(course.key) ? course.value(step) : value);
      history.add(step, row);
      lines += str("{\"training/global_step\": ", step);
      for (const auto& [key, value] : row) lines += str(", \"", key, "\": ", value);
      lines += "}\n";
    }
    write_file(path_join(home_.path(), "steps.jsonl"), lines);
    const RunRecord record = read_run(home_.path());
    const std::vector<RunGroup> groups = group_runs({&record, 1});
    terminal = of_alarms(history.alarms(), history.over());
    for (const Alarm& alarm : find_alarms(groups, {}).alarms) {
      if (alarm.serious) report.standing.insert(alarm.title);
      if (alarm.over) report.over.insert(alarm.title);
    }
    for (const Cause& cause : diagnose_run(record, {}).found) {
      if (!cause.sign.note) diagnosis.standing.insert(cause.sign.row->title);
      if (cause.sign.over()) diagnosis.over.insert(cause.sign.row->title);
    }
  }
  testing::TemporaryDirectory home_;
  Told terminal, report, diagnosis;
};

class OneAlarm : public ThreeReaders,
                 public ::testing::WithParamInterface<std::tuple<const char*, TestedCourse, bool>> {};

TEST_P(OneAlarm, is_named_alike_by_terminal_report_and_diagnosis) {
  const auto& [title, course, ended] = GetParam();
  run(course);
  const std::set<std::string> named = {title}, none;
  for (const Told* told : {&terminal, &report, &diagnosis}) {
    EXPECT_EQ(told->standing, ended ? none : named);
    EXPECT_EQ(told->over, ended ? named : none);
  }
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

}  // namespace
}  // namespace ucas
