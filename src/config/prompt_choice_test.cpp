#include "config/policy_options.h"

#include <gtest/gtest.h>

#include "base/files/file.h"
#include "config/run_evaluation.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class prompt_choice : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(chat() + "/chat_template.jinja",
               "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>");
  }
  std::string chat() const { return directory_.path(); }
  std::string plain() const { return other_.path(); }
  testing::TemporaryDirectory directory_, other_;
};

std::vector<Problem> questions(const std::string& text) {
  Problem problem;
  problem.id = "a";
  problem.text = text;
  return {problem, problem};
}

TEST_F(prompt_choice, a_checkpoint_with_a_chat_template_gets_it_unless_another_is_asked_for) {
  EXPECT_EQ(choose_template("auto", chat(), "qwen_math"), "chat");
  EXPECT_EQ(choose_template("auto", plain(), "qwen_math"), "qwen_math");
  EXPECT_EQ(choose_template("auto", "", "plain"), "plain");
  EXPECT_EQ(choose_template("orz", chat(), "qwen_math"), "orz");
}

TEST_F(prompt_choice, a_file_may_hold_a_chat_template_by_whatever_ending) {
  for (const char* name : {"auto", "chat", "mine.jinja", "mine.jinja2", "mine.j2", "a/b"})
    EXPECT_TRUE(may_be_chat(name));
  EXPECT_FALSE(may_be_chat("qwen_math"));
}

TEST_F(prompt_choice, answers_after_a_chat_template_are_read_leniently_unless_a_box_is_asked_for) {
  const Template prompt_template = load_template("chat", chat());
  const auto extract = [&](const Template& as, const std::string& question, GraderKind grader = GraderKind::math) {
    return choose_extract(ExtractOption::automatic, as, questions(question), grader);
  };
  EXPECT_EQ(extract(prompt_template, "1 + 1?"), Extract::lenient);
  EXPECT_EQ(extract(prompt_template, "1 + 1? Put your answer within \\boxed{}."), Extract::strict)
      << "the question asks";
  EXPECT_EQ(extract(load_template("chat_boxed", chat()), "1 + 1?"), Extract::strict) << "the template asks";
  EXPECT_EQ(extract(load_template("plain", chat()), "1 + 1?"), Extract::strict) << "no chat";
  EXPECT_EQ(extract(prompt_template, "1 + 1?", GraderKind::code), Extract::strict);
  EXPECT_EQ(choose_extract(ExtractOption::strict, prompt_template, questions("1 + 1?"), GraderKind::math),
            Extract::strict);
}

TEST_F(prompt_choice, what_was_decided_is_said) {
  PromptChoice choice{"auto", "chat", ExtractOption::automatic, Extract::lenient};
  EXPECT_EQ(choice.in_words(), "template chat (the checkpoint's own), extract lenient (no prompt asks for \\boxed{})");
  choice = {"plain", "plain", ExtractOption::strict, Extract::strict};
  EXPECT_EQ(choice.in_words(), "") << "nothing was decided here";
}

TEST_F(prompt_choice, a_config_with_a_template_of_its_own_is_decided_at_once) {
  const auto config = [](std::vector<Setting> settings) {
    settings.insert(settings.begin(), {"method.name", std::string("grpo"), "test"});
    return make_train_config(settings);
  };
  EXPECT_EQ(config({{"data.template", std::string("qwen_math"), "test"}}).reward.extract, ExtractOption::strict);
  EXPECT_EQ(config({{"data.template", std::string("chat"), "test"}}).reward.extract, ExtractOption::automatic);
  EXPECT_EQ(config({}).reward.extract, ExtractOption::automatic);
}

TEST_F(prompt_choice, the_line_that_evaluates_as_a_run_validates_has_all_that_differs) {
  std::vector<Setting> settings;
  const auto set = [&](const std::string& key, const std::string& value) {
    settings.push_back({key, value, key, true});
  };
  set("method.name", "grpo");
  set("data.template", "chat");
  set("data.val_files", "a test.jsonl");
  set("data.few_shot", "shots.jsonl");
  set("data.shots", "2");
  set("rollout.response_length", "48");
  set("rollout.stop", "</answer>");
  set("reward.extract", "lenient");
  set("reward.truncated", "wrong");
  set("reward.grader", "numeric");
  set("reward.graders", "gsm8k=math");
  set("dtype", "bf16");
  const TrainConfig config = make_train_config(settings);
  const std::string line = evaluate_line(config, "runs/a/checkpoints/step-0000020");
  EXPECT_EQ(line,
            "ucas evaluate runs/a/checkpoints/step-0000020 --data 'a test.jsonl' --template chat --few_shot "
            "shots.jsonl --shots 2 --stop '</answer>' --extract lenient --grader numeric --graders "
            "gsm8k=math --max_tokens 48 --dtype bf16 --truncated wrong");
  EvaluateOptions again;
  ucas::apply(again, evaluation_settings(config));
  EXPECT_EQ(to_toml(again), to_toml(evaluation_of(config))) << "read back, the words say the same";
}

TEST_F(prompt_choice, a_checkpoint_of_a_run_is_known_by_where_it_lies) {
  const std::string run = chat() + "/run";
  make_directories(run + "/checkpoints/step-0000002");
  EXPECT_EQ(run_of_model(run), "") << "no config.toml yet";
  write_file(run + "/config.toml", "");
  EXPECT_EQ(run_of_model(run), run);
  EXPECT_EQ(run_of_model(run + "/"), run);
  EXPECT_EQ(run_of_model(run + "/checkpoints/step-0000002"), run);
  EXPECT_EQ(run_of_model(run + "/checkpoints/../checkpoints/step-0000002/"), run);
  EXPECT_EQ(run_of_model(chat()), "");
}

}  // namespace
}  // namespace ucas
