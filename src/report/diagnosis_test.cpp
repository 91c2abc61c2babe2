#include "report/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

#include "base/files/file.h"
#include "base/str.h"
#include "config/train_config.h"
#include "records/run/run_directory.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

constexpr int64_t kSteps = 40;
constexpr int64_t kFrom = 21;  // the step at which a planted cause begins

using Row = std::map<std::string, double>;

// Numbers of a training in which nothing is wrong, with some scatter.
Row healthy(int64_t step) {
  const double t = static_cast<double>(step) / kSteps, wave = 0.01 * std::sin(2.3 * static_cast<double>(step));
  const double right = 0.3 + 0.4 * t + wave;
  return {{"training/global_step", static_cast<double>(step)},
          {"training/passes", 0.1 * static_cast<double>(step)},
          {"critic/score/mean", right},
          {"critic/advantages/mean", wave},
          {"critic/advantages/max", 2},
          {"train/accuracy", right},
          {"val-core/test/acc/mean@1", right - 0.05},
          {"rewards/answer/mean", right},
          {"rewards/format/mean", 0.6 + wave},
          {"verifier/unequal_share", 1 - right - 0.02},
          {"verifier/unparseable_share", 0.02},
          {"verifier/over_budget_share", 0},
          {"actor/entropy", 0.8 - 0.3 * t + wave},
          {"actor/grad_norm", 0.3 + wave},
          {"actor/lr", 1e-6 * std::min(1.0, static_cast<double>(step) / 5)},
          {"actor/ppo_kl", 0.001 + 0.1 * wave},
          {"actor/kl_loss", 0.002 * static_cast<double>(step)},
          {"actor/reward_kl_penalty", 0.002 * static_cast<double>(step)},
          {"response_length/mean", 200 + 60 * t + 100 * wave},
          {"response_length/clip_ratio", 0.02 + wave},
          {"train/truncated_share", 0.02 + wave},
          {"rollout/logprob_diff_max", 0},
          {"train/dead_groups", 0.3 + wave},
          {"train/solve_all", 0.1 + 0.1 * t},
          {"train/solve_none", 0.2 - 0.1 * t},
          {"train/groups_trained", 16},
          {"train/taught_token_share", 0.6 + wave},
          {"train/skipped_steps", 0},
          {"train/empty_steps", 0}};
}

struct Planted {
  const char* title;
  std::function<void(Row&, double after)> plant;  // called from step kFrom on; after: steps since
  std::function<void(StoredResponse&)> respond = nullptr;
};

// The accuracy and what counts with it fall, as they would.
void fall(Row& row) {
  for (const char* key : {"critic/score/mean", "train/accuracy", "rewards/answer/mean"}) row[key] = 0.2;
}

// One case for each rule of the table.
const std::vector<Planted>& planted() {
  static const std::vector<Planted> kPlanted = {
      {"Entropy collapse", [](Row& r, double) { fall(r), r["actor/entropy"] = 0.01; }},
      {"Dead groups", [](Row& r, double) { r["train/dead_groups"] = 0.9, r["train/solve_all"] = 0.85; }},
      {"Dead groups", [](Row& r, double) { r["train/empty_steps"] = 2; }},
      {"No right answer",
       [](Row& r, double) {
         fall(r);
         r["train/accuracy"] = 0, r["verifier/unequal_share"] = 0.98;
       }},
      {"Length clipping", [](Row& r, double) { fall(r), r["response_length/clip_ratio"] = 0.4; },
       [](StoredResponse& o) { o.finished = false; }},
      {"Unparseable answers", [](Row& r, double) { fall(r), r["verifier/unparseable_share"] = 0.5; },
       [](StoredResponse& o) { o.verdict = VerdictKind::unparseable; }},
      {"Sampler/trainer mismatch", [](Row& r, double) { fall(r), r["rollout/logprob_diff_max"] = 2.5; }},
      {"Unstable updates", [](Row& r, double after) { r["actor/pg_loss"] = after == 0 ? kUnknown : 0.1; }},
      {"Unstable updates", [](Row& r, double) { r["train/skipped_steps"] = 1; }},
      {"Unstable updates", [](Row& r, double) { fall(r), r["actor/ppo_kl"] = 0.4; }},
      {"Validation fell", [](Row& r, double) { r["val-core/test/acc/mean@1"] = 0.2; },
       [](StoredResponse& o) { o.score = 0.2; }},
  };
  return kPlanted;
}

class causes : public ::testing::Test {
 protected:
  std::string make(const Planted* cause) {
    const std::string run = path_join(root_.path(), str("run", made_++));
    make_directories(path_join(run, "rollouts"));
    write_file(path_join(run, "config.toml"), "[method]\nname = \"grpo\"\n[data]\ntrain_batch_size = 16\n");
    std::string lines;
    for (int64_t step = 1; step <= kSteps; ++step) {
      Row row = healthy(step);
      const bool now = cause != nullptr && step >= kFrom;
      if (now) cause->plant(row, static_cast<double>(step - kFrom));
      const std::vector<std::pair<std::string, double>> values(row.begin(), row.end());
      lines += step_line(values) + "\n";
      std::string rows;
      for (int64_t i = 0; i < 4; ++i) {
        StoredResponse o = response(step, i);
        if (now && cause->respond) cause->respond(o);
        rows += rollout_line(o);
      }
      write_file(path_join(run, "rollouts/" + step_name(step) + ".jsonl"), rows);
    }
    write_file(path_join(run, "steps.jsonl"), lines);
    return run;
  }
  static StoredResponse response(int64_t step, int64_t i) {
    StoredResponse o;
    o.step = step, o.sample = i, o.tokens = 200 + i;
    o.problem = str("p", step % 7), o.prompt = "What is 3 + 4?", o.response = str("Step ", i, ": 3 + 4 = 7.");
    o.gold = {"7"}, o.answer = "7", o.verdict = i == 0 ? VerdictKind::unequal : VerdictKind::equal;
    o.score = i == 0 ? 0 : 1, o.reward = o.score, o.advantage = 0;
    return o;
  }
  static RunDiagnosis of(const std::string& path) {
    const RunRecord run = read_run(path);
    std::vector<std::string> remarks;
    return diagnose_run(run, read_stored(path, remarks));
  }
  testing::TemporaryDirectory root_;
  int made_ = 0;
};

std::vector<std::string> titles(const RunDiagnosis& diagnosis) {
  std::vector<std::string> all;
  for (const Cause& cause : diagnosis.found) all.push_back(cause.sign.row->title);
  return all;
}

TEST_F(causes, a_healthy_run_has_none_though_everything_was_looked_for) {
  const RunDiagnosis found = of(make(nullptr));
  EXPECT_EQ(titles(found), std::vector<std::string>{});
  EXPECT_TRUE(found.blind.empty());
  EXPECT_EQ(found.quiet.size(), sign_rows().size());
  EXPECT_EQ(found.fallen(), nullptr);
}

TEST_F(causes, every_sign_of_the_table_is_named_where_it_alone_is_planted_and_since_when) {
  std::set<const SignRule*> active;
  for (const Planted& cause : planted()) {
    const RunDiagnosis found = of(make(&cause));
    EXPECT_EQ(titles(found), std::vector<std::string>{cause.title});
    ASSERT_FALSE(found.found.empty()) << cause.title;
    const Cause& first = found.found[0];
    active.insert(first.sign.rule);
    EXPECT_EQ(first.sign.since, static_cast<double>(kFrom)) << cause.title;
    EXPECT_FALSE(first.sign.note) << cause.title;
    EXPECT_FALSE(first.sign.what.empty()) << cause.title;
    EXPECT_FALSE(first.evidence.empty()) << cause.title;
    if (cause.respond) {
      ASSERT_FALSE(first.shown.empty()) << cause.title;
      EXPECT_GE(first.shown[0].step, kFrom) << cause.title;
    }
  }
  for (const SignRow& row : sign_rows()) {
    for (const SignRule& rule : row.rules) {
      EXPECT_TRUE(rule.kind == SignRuleKind::none || active.contains(&rule)) << row.title << ": " << rule.key;
    }
  }
}

TEST_F(causes, evidence_is_the_mean_of_ten_steps_before_and_of_the_last_ten) {
  const RunDiagnosis found = of(make(&planted()[4]));  // Length clipping
  const Evidence& e = found.found[0].evidence[0];
  EXPECT_EQ(e.key, "response_length/clip_ratio");
  double before = 0;
  for (int64_t step = kFrom - 10; step < kFrom; ++step) before += healthy(step)["response_length/clip_ratio"] / 10;
  EXPECT_NEAR(e.before, before, 1e-12);
  EXPECT_NEAR(e.after, 0.4, 1e-12);
  EXPECT_EQ(found.fallen()->key, "critic/score/mean");
  EXPECT_EQ(found.fallen()->since, kFrom);
}

TEST_F(causes, low_entropy_is_a_note_where_the_reward_rose_and_stays) {
  const Planted success{"Entropy collapse", [](Row& r, double) { r["actor/entropy"] = 0.01; }};
  const RunDiagnosis found = of(make(&success));
  ASSERT_EQ(found.found.size(), 1u);
  EXPECT_TRUE(found.found[0].sign.note);
}

TEST_F(causes, what_began_before_the_fall_comes_first_and_what_always_was_explains_none) {
  const Planted two{"", [](Row& r, double after) {
                      r["actor/ppo_kl"] = 0.5;
                      if (after >= 5) fall(r), r["verifier/unparseable_share"] = 0.6;
                      if (after >= 10) r["response_length/clip_ratio"] = 0.5;
                    }};
  const std::string run = make(&two);
  RunRecord record = read_run(run);
  std::ranges::fill(record.steps.column["train/dead_groups"], 0.9);
  const RunDiagnosis found = diagnose_run(record, {});
  ASSERT_EQ(titles(found),
            (std::vector<std::string>{"Unstable updates", "Unparseable answers", "Dead groups", "Length clipping"}));
  EXPECT_EQ(found.fallen()->since, kFrom + 5);
  EXPECT_TRUE(found.found[2].always);
}

TEST(signs, every_remedy_is_an_option_of_a_training_and_every_text_says_what_to_do) {
  std::set<std::string> keys;
  for (const FieldValue& field : fields_of(TrainConfig{})) keys.insert(field.key);
  for (const SignRow& row : sign_rows()) {
    EXPECT_FALSE(row.title.empty() || row.meaning.empty() || row.tries.empty()) << row.title;
    for (const std::string& text : row.tries) EXPECT_TRUE(keys.contains(text.substr(0, text.find(": ")))) << text;
  }
}

TEST(signs, every_row_reads_declared_numbers_and_says_when_it_stands) {
  for (const SignRow& row : sign_rows()) {
    for (const SignRule& rule : row.rules) {
      EXPECT_TRUE(rule.key.empty() || find_metric(rule.key) != nullptr) << rule.key;
    }
    for (const std::string& also : row.also) EXPECT_NE(find_metric(also), nullptr) << also;
    EXPECT_NE(when_of(row), "") << row.title;
  }
  EXPECT_EQ(when_of(row_of(Sign::dead_groups)),
            "mean of the last 10 `train/dead_groups` above 50 %, or `train/empty_steps` above 0");
  EXPECT_EQ(when_of(row_of(Sign::mismatch)), "`rollout/logprob_diff_max` of a step beyond 0.001 nats");
}

TEST(trend_of, few_validations_are_judged_by_the_first_and_the_last) {
  StepTable table;
  table.step = {0, 10, 20};
  table.column["val-core/small/acc/mean@1"] = {0.25, 0.859, 0.953};
  Trend trend = trend_of(table, "val-core/*/acc/mean@1");
  EXPECT_EQ(trend.course, Course::unknown) << "of how many problems is not known";
  EXPECT_EQ(trend.first, 0.25);
  EXPECT_EQ(trend.last, 0.953);
  table.column["val-aux/small/problems"] = {64, 64, 64};
  trend = trend_of(table, "val-core/*/acc/mean@1");
  EXPECT_EQ(trend.course, Course::rose);
  EXPECT_EQ(trend.first_step, 0);
  EXPECT_EQ(trend.last_step, 20);
  EXPECT_NEAR(trend.low, 0.561, 0.002);  // (0.25 * 64 + 1) / 66 and (0.953 * 64 + 1) / 66, 1.96 standard errors
  EXPECT_NEAR(trend.high, 0.803, 0.002);
  table.column["val-core/small/acc/mean@1"] = {0.25, 0.3, 0.3};
  EXPECT_EQ(trend_of(table, "val-core/*/acc/mean@1").course, Course::flat);
  table.column["val-core/small/acc/mean@1"] = {0.5, 0.25, 0.25};
  trend = trend_of(table, "val-core/*/acc/mean@1");
  EXPECT_EQ(trend.course, Course::fell);
  EXPECT_EQ(trend.since, 10) << "the first low one";
  const Signs signs = find_signs(table);
  ASSERT_EQ(signs.found.size(), 1u);
  EXPECT_EQ(signs.found[0].what, "validation accuracy fell from 50.0 % (its best, at step 0) to 25.0 %, since step 10");
}

TEST(trend_of, scatter_hides_no_validation_below_where_it_began) {
  StepTable table;
  table.step = {0, 4, 8, 12, 16};
  table.column["val-core/small/acc/mean@1"] = {0.5, 0.4, 0.25, 0.3, 0.25};
  table.column["val-aux/small/problems"] = {80, 80, 80, 80, 80};
  const Trend trend = trend_of(table, "val-core/*/acc/mean@1");
  EXPECT_EQ(trend.course, Course::fell);
  EXPECT_EQ(trend.since, 8);
  EXPECT_EQ(trend.best_step, 0);
}

TEST_F(causes, a_fall_begins_at_the_first_low_validation_and_what_came_later_is_a_consequence) {
  RunRecord run;
  for (int step = 0; step <= 16; ++step) {
    run.steps.step.push_back(step);
    run.steps.column["critic/score/mean"].push_back(step == 0 ? kUnknown : step < 12 ? 0.5 : 0.1);
    run.steps.column["train/dead_groups"].push_back(step == 0 ? kUnknown : step < 6 ? 0.1 : 1);
    run.steps.column["val-core/small/acc/mean@1"].push_back(step % 4 != 0 ? kUnknown : step == 0 ? 0.5 : 0.25);
    run.steps.column["val-aux/small/problems"].push_back(step % 4 != 0 ? kUnknown : 80);
  }
  const RunDiagnosis found = diagnose_run(run, {});
  ASSERT_NE(found.fallen(), nullptr);
  EXPECT_EQ(found.fallen()->since, 4);
  EXPECT_EQ(titles(found), (std::vector<std::string>{"Validation fell", "Dead groups"}));
  EXPECT_NE(diagnosis_text(run, found).find("2 steps after the fall began"), std::string::npos)
      << diagnosis_text(run, found);
}

TEST(trend_of, scatter_alone_is_flat_and_a_fall_says_its_best_and_its_step) {
  StepTable table;
  for (int i = 0; i < 30; ++i) {
    table.step.push_back(i + 1);
    table.column["scatter"].push_back(0.5 + (i % 2 == 0 ? 0.05 : -0.05));
    table.column["fall"].push_back(i < 18 ? 0.02 * i : 0.1);
    table.column["short"].push_back(i < 3 ? 1.0 * i : kUnknown);
  }
  EXPECT_EQ(trend_of(table, "scatter").course, Course::flat);
  EXPECT_EQ(trend_of(table, "short").course, Course::unknown);
  const Trend fell = trend_of(table, "fall");
  EXPECT_EQ(fell.course, Course::fell);
  EXPECT_EQ(fell.best_step, 18);
  EXPECT_EQ(fell.since, 19);
  EXPECT_NEAR(fell.last, 0.1, 1e-12);
}

}  // namespace
}  // namespace ucas
