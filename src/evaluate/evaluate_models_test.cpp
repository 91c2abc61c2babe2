#include "evaluate/evaluate_models.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

class evaluate_models : public ::testing::Test {
 protected:
  std::vector<EvaluatedModel> read(const std::vector<std::string>& words) { return read_models(words, {}); }
  std::string refusal(const std::vector<std::string>& words) {
    try {
      read(words);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

std::vector<std::string> labels(const std::vector<EvaluatedModel>& models) {
  std::vector<std::string> names;
  for (const EvaluatedModel& model : models) names.push_back(model.label);
  return names;
}

TEST_F(evaluate_models, are_named_on_the_command_line_or_by_their_paths) {
  const auto models = read({"a=x/one", "x/two/", "runs/r/checkpoints/step-0000024", "y/two", "x/b=c"});
  EXPECT_EQ(labels(models), (std::vector<std::string>{"a", "two", "r-step-0000024", "two-2", "b=c"}));
  EXPECT_EQ(models[0].path, "x/one");
  EXPECT_EQ(models[4].path, "x/b=c");
}

TEST_F(evaluate_models, mistakes_are_named) {
  EXPECT_NE(refusal({}).find("no MODEL directory given"), std::string::npos);
  EXPECT_NE(refusal({"a=x", "a=y"}).find("expected different names"), std::string::npos);
  EXPECT_NE(refusal({"a="}).find("expected LABEL=DIR"), std::string::npos);
  EXPECT_NE(refusal({".p=x/y"}).find("names that can be file names"), std::string::npos);
}

TEST_F(evaluate_models, only_what_was_typed_beats_a_suite) {
  EvaluateOptions options;
  PolicyLine line = read_policy_line({"--max-tokens", "64"}, {});
  ucas::apply(options, line.settings);
  const CommandSettings command = command_settings(options, line.settings);
  EXPECT_EQ(command.max_tokens, 64);
  EXPECT_EQ(command.prompt_template, std::nullopt);
  EXPECT_EQ(command.default_template, "auto");
  EXPECT_EQ(command.extract, std::nullopt);
}

}  // namespace
}  // namespace ucas
