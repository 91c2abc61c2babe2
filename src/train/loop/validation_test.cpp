#include "train/loop/validation.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "support/engine/tiny_training.h"
#include "train/loop/trainer.h"

namespace ucas {
namespace {

using testing::TinyTraining;

StepMetrics validated_at(double first, double second) {
  StepMetrics m;
  m.set(metric::train_accuracy, 0.9);
  m.set(metric::val_accuracy, {"gsm8k"}, first);
  m.set(metric::val_accuracy, {"openai/math"}, second);
  return m;
}

TEST(validation, the_best_metric_is_the_mean_over_the_sources_that_match) {
  EXPECT_EQ(value_of_best("val-core/*/acc/mean@1", validated_at(0.25, 0.75)), 0.5);
  EXPECT_EQ(value_of_best("val-core/gsm8k/acc/mean@1", validated_at(0.25, 0.75)), 0.25);
}

TEST(validation, a_best_metric_that_no_validation_has_is_refused_with_those_there_are) {
  try {
    value_of_best("val-core/aime/acc/mean@1", validated_at(0.25, 0.75));
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("val-core/gsm8k/acc/mean@1"), std::string::npos) << said;
    EXPECT_EQ(said.find("train/accuracy"), std::string::npos) << "a number of the training is none: " << said;
  }
}

TEST(validation, the_best_step_is_the_first_of_its_value_and_others_are_counted) {
  const TinyTraining tiny;
  Training t = open_training(tiny.config("train.best_metric = \"val-core/*/acc/mean@1\"\ntrain.test_freq = 1\n"
                                         "data.val_files = [\"" +
                                         tiny.path_of("task/dev.jsonl") + "\"]"),
                             tiny.out(), "test");
  const auto at = [&](int64_t step, double value) {
    t.state.step = step;
    judge(t, validated_at(value, value));
  };
  at(1, 0.25);
  EXPECT_EQ(t.state.best.step, 1);
  at(2, 0.25);
  EXPECT_EQ(t.state.best.step, 1);
  at(3, 0.5);
  EXPECT_EQ(t.state.best.step, 3);
  EXPECT_EQ(t.state.best.value, 0.5);
}

TEST(validation, each_source_has_its_numbers_of_the_greedy_responses) {
  const TinyTraining tiny;
  Training t =
      open_training(tiny.config("data.val_files = [\"" + tiny.path_of("task/dev.jsonl") + "\"]\ntrain.test_freq = 1"),
                    tiny.out(), "test");
  TrainObserver none;
  StepRecord record(t, {0, 1, 0}, none);
  validate(t, record);
  int64_t sources = 0, problems = 0;
  for (const auto& [name, value] : record.metrics.values()) {
    if (is_of(name, metric::val_accuracy)) ++sources;
    if (is_of(name, metric::val_problems)) problems += static_cast<int64_t>(value);
  }
  EXPECT_GE(sources, 1);
  EXPECT_EQ(problems, t.validation.size());
}

TEST(validation, a_reward_from_outside_judges_it_as_well) {
  const TinyTraining tiny;
  std::string rows = read_file(tiny.path_of("task/dev.jsonl"));
  const std::string answer = "\"answer\":", truth = R"("reward_model":{"ground_truth":{"target":3}},"was":)";
  for (size_t at = 0; (at = rows.find(answer, at)) != std::string::npos; at += truth.size())
    rows.replace(at, answer.size(), truth);
  const std::string set = tiny.path_of("val.jsonl");
  write_file(set, rows);
  const std::string reply = R"(sed -u "s/^{.id.:\([0-9]*\),.*/{\"id\":\1,\"score\":0.5,\"right\":true}/")";
  Training t = open_training(tiny.config("data.val_files = [\"" + set +
                                         "\"]\ntrain.test_freq = 1\ntrain.val_n = 2\nreward.command = '" + reply + "'"),
                             tiny.out(), "test");
  TrainObserver none;
  StepRecord record(t, {0, 1, 0}, none);
  validate(t, record);
  int64_t scores = 0, right = 0;
  for (const auto& [name, value] : record.metrics.values()) {
    if (is_of(name, metric::val_accuracy) || is_of(name, metric::val_best_at)) right += value == 1;
    if (is_of(name, metric::val_reward)) scores += value == 0.5;
  }
  EXPECT_GT(scores, 0);
  EXPECT_EQ(scores, right) << "each source has one greedy and one of two samples";
}

}  // namespace
}  // namespace ucas
