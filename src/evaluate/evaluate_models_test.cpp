#include "evaluate/evaluate_models.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class evaluate_models : public ::testing::Test {
 protected:
  std::vector<ModelSettings> read(const std::vector<std::string>& words, const std::string& file = "") {
    PolicyLine line = read_policy_line(words, {"labels"});
    const std::vector<Setting> settings = take_model_settings(line);
    EvaluateOptions options;
    ucas::apply(options, line.settings);
    return read_models(line.positionals, options.labels, file, settings);
  }
  std::string refusal(const std::vector<std::string>& words, const std::string& file = "") {
    try {
      read(words, file);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::string models_file(const std::string& text) {
    const std::string path = path_join(folder_.path(), "models.toml");
    write_file(path, text);
    return path;
  }
  testing::TemporaryDirectory folder_;
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
  EXPECT_EQ(labels(read({"m", "n", "--labels", "p,q"})), (std::vector<std::string>{"p", "q"}));
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

TEST_F(evaluate_models, come_from_a_file_in_its_order_and_the_command_line_has_the_last_word) {
  const std::string file = models_file(
      "[model.zero]\npath = \"z\"\ntemplate = \"r1\"\nmax_tokens = 5\n[model.base]\npath = \"b\"\n"
      "[model.own]\ntemplate = \"plain\"\n");
  const auto models = read({"own=dir", "--model.zero.max_tokens", "7"}, file);
  EXPECT_EQ(labels(models), (std::vector<std::string>{"own", "zero", "base"}));
  EXPECT_EQ(models[0].path, "dir");
  EXPECT_EQ(models[0].prompt_template, "plain");
  EXPECT_EQ(models[1].path, "z");
  EXPECT_EQ(models[1].prompt_template, "r1");
  EXPECT_EQ(models[1].max_tokens, 7);
  EXPECT_NE(refusal({}, file).find("[model.own]: path is missing"), std::string::npos) << refusal({}, file);
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
  EXPECT_NE(refusal({"m", "n", "--labels", "p"}).find("labels: 1 names for 2 models"), std::string::npos);
  EXPECT_NE(refusal({"m", "--labels", "../p"}).find("names that can be file names"), std::string::npos);
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
