#include "report/alarms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files/file.h"
#include "base/str.h"
#include "support/synthetic_run.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class alarms : public ::testing::Test {
 protected:
  AlarmReport of(const std::vector<std::string>& paths) {
    runs_.clear();
    for (const std::string& path : paths) runs_.push_back(read_run(path));
    groups_ = group_runs(runs_);
    return find_alarms(groups_, results_of(groups_));
  }
  static const Alarm* find(const AlarmReport& report, const std::string& title) {
    for (const Alarm& alarm : report.alarms) {
      if (alarm.title == title) return &alarm;
    }
    return nullptr;
  }
  const testing::TemporaryDirectory folder_;
  const std::string& root_ = folder_.path();
  std::vector<RunRecord> runs_;
  std::vector<RunGroup> groups_;
};

TEST_F(alarms, a_healthy_demo_raises_none_and_says_what_was_checked) {
  AlarmReport report = of(write_synthetic_demo(root_, 2));
  for (const Alarm& alarm : report.alarms) EXPECT_FALSE(alarm.serious) << alarm.title << ": " << alarm.what;
  EXPECT_EQ(std::count(report.quiet.begin(), report.quiet.end(), "Sampler/trainer mismatch"), 1);
  EXPECT_EQ(std::count(report.quiet.begin(), report.quiet.end(), "Dead groups"), 1);
}

TEST_F(alarms, entropy_that_falls_while_the_reward_rises_is_a_note) {
  AlarmReport report = of(write_synthetic_demo(root_, 1));
  const Alarm* low = find(report, "Entropy collapse");
  ASSERT_NE(low, nullptr);
  EXPECT_FALSE(low->serious);
  EXPECT_NE(low->cause.find("not harmful so far"), std::string::npos) << low->cause;
}

TEST_F(alarms, a_troubled_run_raises_every_alarm_with_its_number) {
  SyntheticRun made;
  made.method = "dapo";
  made.troubled = true;
  AlarmReport report = of({write_synthetic_run(root_ + "/r", made)});
  for (const char* title : {"Entropy collapse", "Dead groups", "Length clipping", "Unparseable answers",
                            "Sampler/trainer mismatch", "Unstable updates"}) {
    const Alarm* alarm = find(report, title);
    ASSERT_NE(alarm, nullptr) << title;
    EXPECT_TRUE(alarm->serious) << title;
    EXPECT_FALSE(alarm->cause.empty()) << title;
  }
  EXPECT_NE(find(report, "Dead groups")->what.find("80.0 %"), std::string::npos);
  EXPECT_NE(find(report, "Dead groups")->what.find("too hard"), std::string::npos);
  EXPECT_NE(find(report, "Sampler/trainer mismatch")->what.find("0.020"), std::string::npos);
  EXPECT_NE(find(report, "Unstable updates")->what.find("actor/grad_norm at step 3"), std::string::npos);
}

TEST_F(alarms, a_run_without_one_right_answer_says_so_unless_nothing_was_graded) {
  RunRecord run;
  run.name = "r";
  for (int step = 1; step <= 6; ++step) {
    run.steps.step.push_back(step);
    run.steps.column["train/accuracy"].push_back(step == 1 ? 0.25 : 0);
    run.steps.column["verifier/unequal_share"].push_back(0.75);
  }
  RunGroup group;
  group.title = "GRPO";
  group.trained = true;
  group.runs = {&run};
  AlarmReport report = find_alarms({group}, {});
  const Alarm* alarm = find(report, "No right answer");
  ASSERT_NE(alarm, nullptr);
  EXPECT_EQ(alarm->what, "no response of the last 5 steps was right, though an answer was read in 75.0 %");
  EXPECT_NE(alarm->cause.find("ucas verify --explain"), std::string::npos);
  run.steps.column["train/accuracy"][3] = 0.01;  // two steps in vain are not enough
  EXPECT_EQ(find(find_alarms({group}, {}), "No right answer"), nullptr);
  run.steps.column["train/accuracy"].assign(6, 0);
  run.steps.column["verifier/unequal_share"].assign(6, 0);  // a method without labels
  EXPECT_EQ(find(find_alarms({group}, {}), "No right answer"), nullptr);
}

// Each trouble alone, in numbers that are otherwise healthy.
TEST_F(alarms, every_trouble_raises_its_own_alarm_alone_with_a_cause_and_a_remedy) {
  struct Trouble {
    const char* title;
    const char* key;
    double value;
    const char* remedy;
  };
  const Trouble troubles[] = {
      {"Entropy collapse", "actor/entropy", 0.01, "stop earlier"},
      {"Dead groups", "train/dead_groups", 0.9, "more samples a prompt"},
      {"Length clipping", "response_length/clip_ratio", 0.5, "rollout.response_length: raise it"},
      {"Unparseable answers", "verifier/unparseable_share", 0.4, "Check the template and the stop tokens"},
      {"Sampler/trainer mismatch", "rollout/logprob_diff_max", 0.01, "precision of the trainer"},
      {"Unstable updates", "train/skipped_steps", 2, "optimizer.lr: lower it"},
  };
  for (const Trouble& trouble : troubles) {
    std::string path = root_ + "/alone", lines;
    for (int step = 1; step <= 12; ++step) {
      lines += str("{\"training/global_step\": ", step);
      for (const Trouble& other : troubles) {
        double healthy = other.key == std::string("actor/entropy") ? 0.6 : 0;
        lines += str(", \"", other.key, "\": ", &other == &trouble && step > 4 ? other.value : healthy);
      }
      lines += "}\n";
    }
    make_directories(path);
    write_file(path + "/steps.jsonl", lines);
    AlarmReport report = of({path});
    ASSERT_EQ(report.alarms.size(), 1u) << trouble.title;
    EXPECT_EQ(report.alarms[0].title, trouble.title);
    EXPECT_TRUE(report.alarms[0].serious);
    EXPECT_NE(report.alarms[0].cause.find(trouble.remedy), std::string::npos) << report.alarms[0].cause;
    remove_all(path);
  }
}

TEST_F(alarms, the_same_finding_in_several_seeds_is_told_once) {
  SyntheticRun made;
  made.method = "dapo";
  made.troubled = true;
  std::vector<std::string> paths;
  for (made.seed = 0; made.seed < 3; ++made.seed)
    paths.push_back(write_synthetic_run(root_ + "/" + std::to_string(made.seed), made));
  AlarmReport report = of(paths);
  EXPECT_EQ(std::count_if(report.alarms.begin(), report.alarms.end(),
                          [](const Alarm& a) { return a.title == "Dead groups"; }),
            1);
  EXPECT_EQ(find(report, "Dead groups")->run, "0, 1, 2");
}

}  // namespace
}  // namespace ucas
