// Which options matter is said once, where each is declared (Effect in base/text/fields.h); --resume, `ucas explain`, a
// study's pool and the report's groups must agree with it on every option of every method.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "cli/engine/speaking.h"
#include "config/config_file.h"
#include "config/explain/explain.h"
#include "methods/registry.h"
#include "results/compare/groups.h"
#include "study/engine/plan.h"
#include "support/temporary_directory.h"
#include "train/state/fingerprint.h"

namespace ucas {
namespace {

TrainConfig config_with(const std::string& method, const std::vector<Setting>& more) {
  std::vector<Setting> settings = {{"method.name", method, "test", true}};
  settings.insert(settings.end(), more.begin(), more.end());
  return make_train_config(settings);
}

std::string value_of(const TrainConfig& config, const std::string& key) {
  for (const FieldValue& f : fields_of(config)) {
    if (f.key == key) return f.value;
  }
  return "";
}

// A setting of `key` that differs from what `method` has; found by trying, and by what a refusal expects.
std::optional<Setting> another_value(const std::string& method, const FieldValue& field) {
  std::vector<std::string> candidates = {"true", "false", "1", "2", "3", "0", "0.5", "0.25", "1.5", "64", "x"};
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Setting setting{field.key, candidates[i], "test", true};
    try {
      if (value_of(config_with(method, {setting}), field.key) != field.value) return setting;
    } catch (const Error& refusal) {
      const std::string text = refusal.what();
      const size_t list = text.find("expected one of ");
      if (list == std::string::npos || candidates.size() > 20) continue;
      for (const std::string& word : split(text.substr(list + 16), ',')) {
        const std::string_view name = trim(word);
        candidates.emplace_back(name.substr(0, name.find(' ')));
      }
    }
  }
  return std::nullopt;
}

// A study of one run with this setting.
StudyPlan plan_with(const std::string& pool, const Setting& setting) {
  Study study;
  study.config.base.task = StudyBase::Task::register_chains;
  study.config.pool = pool;
  study.config.out = pool;
  study.runs = {{"row", "ucas-tiny", {setting}}};
  return StudyPlan(study);
}
std::string pool_path(const std::string& pool, const Setting& setting) {
  return plan_with(pool, setting).tasks().front().path;
}

TEST(effects, explain_departures_resume_and_report_follow_what_every_option_of_every_method_declares) {
  for (const MethodRow& row : method_rows()) {
    SCOPED_TRACE(row.name);
    const TrainConfig config = config_with(row.name, {});
    for (const FieldValue& field : fields_of(config)) {
      SCOPED_TRACE(field.key);
      const bool length = field.key == "train.steps" || field.key == "train.epochs";  // train/state/fingerprint_test
      EXPECT_TRUE(length || is_free_option(field.key) == !is_fixed(field.effect));
      EXPECT_EQ(is_incidental(field.key), !tells_runs_apart(field.effect));
      EXPECT_EQ(effect_of(field.key), field.effect) << "an option of a method must follow from the key alone";
      if (field.key == "method.name" || field.key == "method.preset") continue;  // said in the page's heading
      const std::optional<Setting> setting = another_value(row.name, field);
      ASSERT_TRUE(setting.has_value()) << "expected a second value that the option accepts";
      const std::vector<Departure> rows = departures(config, config_with(row.name, {*setting}));
      // reward.extract follows data.template where it is left to it.
      const auto own = [&](const Departure& d) { return d.key != "reward.extract" || field.key != "data.template"; };
      EXPECT_EQ(std::ranges::count_if(rows, own), is_departure(field.effect) ? 1 : 0);
      for (const Departure& departure : rows) EXPECT_EQ(departure.size, field.effect == Effect::size);
    }
  }
}

TEST(effects, a_study_trains_again_for_an_option_that_tells_runs_apart_and_for_no_other) {
  testing::TemporaryDirectory pool;
  const TrainConfig config = make_train_config(read_config_file("ucas-tiny"));
  const std::string before = pool_path(pool.path(), {"label", std::string("x"), "test", true});
  int64_t apart = 0, together = 0;
  for (const FieldValue& field : fields_of(config)) {
    if (field.key == "method.name" || field.key == "method.preset") continue;
    SCOPED_TRACE(field.key);
    std::vector<std::string> candidates = {"7", "0.75", "true", "false", "x"};
    for (size_t i = 0; i < candidates.size(); ++i) {
      try {
        const Setting setting{field.key, candidates[i], "test", true};
        TrainConfig changed = make_train_config([&] {
          std::vector<Setting> settings = read_config_file("ucas-tiny");
          settings.push_back(setting);
          return settings;
        }());
        if (value_of(changed, field.key) == field.value) continue;
        EXPECT_EQ(pool_path(pool.path(), setting) != before, tells_runs_apart(field.effect));
        ++(tells_runs_apart(field.effect) ? apart : together);
        break;
      } catch (const Error&) {  // of another type, out of range, or not together with the rest
      }
    }
  }
  EXPECT_GT(apart, 20);
  EXPECT_GT(together, 15);
}

// A new option is `result` unless somebody decides otherwise; changing one of these is a decision, too.
TEST(effects, the_options_that_do_not_decide_what_is_learnt) {
  const std::map<std::string, Effect> expected = {{"label", Effect::bookkeeping},
                                                  {"model", Effect::place},
                                                  {"device", Effect::place},
                                                  {"threads", Effect::place},
                                                  {"seed", Effect::place},
                                                  {"data.files", Effect::place},
                                                  {"data.max_prompt_length", Effect::size},
                                                  {"data.train_batch_size", Effect::size},
                                                  {"data.gen_batch_size", Effect::size},
                                                  {"data.max_num_gen_batches", Effect::size},
                                                  {"data.skip_bad_rows", Effect::place},
                                                  {"data.val_files", Effect::place},
                                                  {"data.columns.id", Effect::place},
                                                  {"data.columns.problem", Effect::place},
                                                  {"data.columns.answer", Effect::place},
                                                  {"data.columns.choices", Effect::place},
                                                  {"data.columns.subject", Effect::place},
                                                  {"rollout.n", Effect::size},
                                                  {"rollout.response_length", Effect::size},
                                                  {"rollout.max_slots", Effect::bookkeeping},
                                                  {"rollout.old_log_prob", Effect::bookkeeping},
                                                  {"rollout.servers", Effect::bookkeeping},
                                                  {"rollout.retries", Effect::bookkeeping},
                                                  {"rollout.request_timeout", Effect::bookkeeping},
                                                  {"rollout.patience", Effect::bookkeeping},
                                                  {"reward.command_seconds", Effect::bookkeeping},
                                                  {"reward.overlong_buffer", Effect::size},
                                                  {"update.mini_batch_size", Effect::size},
                                                  {"update.recompute", Effect::bookkeeping},
                                                  {"update.offload", Effect::bookkeeping},
                                                  {"update.micro_batch_tokens", Effect::procedure},
                                                  {"train.steps", Effect::size},
                                                  {"train.epochs", Effect::size},
                                                  {"train.save_freq", Effect::bookkeeping},
                                                  {"train.keep", Effect::bookkeeping},
                                                  {"train.test_freq", Effect::procedure},
                                                  {"train.val_before_train", Effect::procedure},
                                                  {"train.val_n", Effect::procedure},
                                                  {"train.best_metric", Effect::procedure},
                                                  {"train.stored_prompts", Effect::bookkeeping},
                                                  {"train.stored_responses", Effect::bookkeeping},
                                                  {"train.stored_signals", Effect::bookkeeping},
                                                  {"train.watchdog", Effect::bookkeeping},
                                                  {"train.max_hours", Effect::bookkeeping}};
  for (const FieldValue& field : fields_of(TrainConfig{})) {
    auto at = expected.find(field.key);
    EXPECT_EQ(static_cast<int>(field.effect), static_cast<int>(at == expected.end() ? Effect::result : at->second))
        << field.key;
  }
}

// Rank 0 speaks for all, but of the machine that a rank runs on that rank alone knows.
TEST(speaking, a_rank_that_is_muted_says_what_its_own_machine_lacks) {
  std::string logged;
  const LogSink sink = muted([&](LogLevel, const std::string& line) { logged += line + "|"; }, 5);
  sink(LogLevel::info, "all say this");
  sink(LogLevel::warning, "and this");
  sink(LogLevel::own, "no kernel runs here");
  EXPECT_EQ(logged, "rank 5: no kernel runs here|");
}

}  // namespace
}  // namespace ucas
