#include "evaluate/evaluate_models.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

class evaluate_models : public ::testing::Test {
 protected:
  std::vector<ModelSettings> read(const std::vector<std::string>& words) {
    PolicyLine line = read_policy_line(words, {});
    const std::vector<Setting> settings = take_model_settings(line);
    return read_models(line.positionals, settings);
  }
  std::string refusal(const std::vector<std::string>& words) {
    try {
      read(words);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

std::vector<std::string> labels(const std::vector<ModelSettings>& models) {
  std::vector<std::string> names;
  for (const ModelSettings& model : models) names.push_back(model.label);
  return names;
}

TEST_F(evaluate_models, are_named_on_the_command_line_or_by_their_paths) {
  const auto models = read({"a=x/one", "x/two/", "runs/r/checkpoints/step-0000024", "y/two", "x/b=c"});
  EXPECT_EQ(labels(models), (std::vector<std::string>{"a", "two", "r-step-0000024", "two-2", "b=c"}));
  EXPECT_EQ(models[0].path, "x/one");
  EXPECT_EQ(models[4].path, "x/b=c");
}

TEST_F(evaluate_models, take_settings_of_their_own) {
  const auto models = read({"grpo-7b=x", "b=y", "--model.grpo-7b.max_tokens", "8192", "--model.b.template", "orz",
                            "--model.b.stop", "</s>,<eos>", "--model.b.extract=answer_tag"});
  EXPECT_EQ(models[0].max_tokens, 8192);
  EXPECT_EQ(models[0].prompt_template, "");
  EXPECT_EQ(models[1].prompt_template, "orz");
  EXPECT_EQ(models[1].stop, (std::vector<std::string>{"</s>", "<eos>"}));
  EXPECT_EQ(models[1].extract, Extract::answer_tag);
  EXPECT_EQ(read({"x/qwen-1.5b", "--model.qwen-1.5b.max_tokens", "3"})[0].max_tokens, 3);
}

TEST_F(evaluate_models, mistakes_are_named) {
  EXPECT_NE(refusal({}).find("no MODEL directory given"), std::string::npos);
  EXPECT_NE(refusal({"a=x", "--model.c.max_tokens", "3"})
                .find("--model.c.max_tokens: there is no model of that name; "
                      "there is a"),
            std::string::npos)
      << refusal({"a=x", "--model.c.max_tokens", "3"});
  EXPECT_NE(refusal({"a=x", "--model.a.max_token", "3"}).find("unknown key (did you mean --max_tokens?)"),
            std::string::npos)
      << refusal({"a=x", "--model.a.max_token", "3"});
  EXPECT_NE(refusal({"a=x", "a=y"}).find("expected different names"), std::string::npos);
  EXPECT_NE(refusal({"a="}).find("expected LABEL=DIR"), std::string::npos);
  EXPECT_NE(refusal({"a=x", "--model.max_tokens", "3"}).find("expected model.LABEL.KEY"), std::string::npos);
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
