#include "evaluate/engine/choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/text/json.h"
#include "support/temporary_directory.h"
#include "support/tokenizer_goldens.h"
#include "text/tokenizer/word_level.h"

namespace ucas {
namespace {

const std::string kGoldens = std::string(UCAS_SOURCE_DIR) + "/tests/goldens/";

// tools/make_choice_goldens.py
TEST(choices, have_the_log_probs_of_transformers) {
  double worst = 0;
  for (const Json& item : read_json(kGoldens + "choices.json", 1 << 20)) {
    const auto model = load_model(kGoldens + "model/" + item["model"].get<std::string>(), at::kCPU);
    const auto prompts = item["prompts"].get<std::vector<std::vector<int32_t>>>();
    const auto letters = item["letters"].get<std::vector<int32_t>>();
    std::vector<ChoiceQuestion> questions;
    for (const auto& prompt : prompts) questions.push_back({prompt, letters});
    const std::vector<ChoiceScore> scores = score_choices(*model, questions);
    ASSERT_EQ(scores.size(), prompts.size());
    for (size_t i = 0; i < scores.size(); ++i) {
      const Json& want = item["expected"][i];
      for (size_t k = 0; k < letters.size(); ++k) {
        worst = std::max(worst, std::fabs(scores[i].logprob[k] - want["logprob"][k].get<double>()));
      }
      worst = std::max(worst, std::fabs(scores[i].entropy - want["entropy"].get<double>()));
      worst = std::max(worst, std::fabs(scores[i].confidence - want["confidence"].get<double>()));
    }
  }
  std::printf("max |difference| to transformers %.2e\n", worst);
  EXPECT_LE(worst, 5e-5);
}

class compared_choices : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> words = {"q", "x", " ", "A", "B", "C", " A", " B", " C", "D", "E", "\n"};
    write_word_level_tokenizer(folder_.path(), words, "<eos>", "<pad>");
    ModelConfig config;
    model_ = make_model(config, 3, at::kCPU);
    for (size_t i = 0; i < 7; ++i) {
      Problem& problem = problems_.emplace_back();
      problem.source = "s";
      problem.id = std::to_string(i);
      problem.choices.assign(2 + i % 2, "a choice");
      prompts_.push_back(std::vector<int32_t>(1 + 5 * i % 11, static_cast<int32_t>(i % 2)));
    }
  }
  std::vector<Output> run(std::vector<size_t> which, int64_t batch_tokens = 2048) {
    std::vector<Output> outputs;
    compare_choices(*model_, Tokenizer::load(folder_.path()),
                    {.problems = problems_,
                     .prompts = prompts_,
                     .which = which,
                     .batch_tokens = batch_tokens,
                     .ended = [&](Output output) { outputs.push_back(std::move(output)); }});
    return outputs;
  }
  testing::TemporaryDirectory folder_;
  std::unique_ptr<Model> model_;
  std::vector<Problem> problems_;
  std::vector<std::vector<int32_t>> prompts_;
};

TEST_F(compared_choices, answer_with_the_letter_of_greatest_log_prob) {
  const std::vector<Output> outputs = run({0, 1, 2, 3, 4, 5, 6});
  ASSERT_EQ(outputs.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    const Output& output = outputs[i];
    ASSERT_EQ(output.choice_logprob.size(), problems_[i].choices.size());
    const auto best = std::ranges::max_element(output.choice_logprob) - output.choice_logprob.begin();
    EXPECT_EQ(output.id, problems_[i].id);
    EXPECT_EQ(output.sample, kGreedySample);
    EXPECT_EQ(output.text, std::string(1, static_cast<char>('A' + best)));
    EXPECT_EQ(output.ids, std::vector<int32_t>{static_cast<int32_t>(6 + best)});  // " A" ..
    EXPECT_EQ(output.logprob, output.choice_logprob[static_cast<size_t>(best)]);
    EXPECT_TRUE(output.finished);
    EXPECT_GT(output.entropy, 0);
  }
}

TEST_F(compared_choices, do_not_depend_on_the_batch_or_the_order) {
  const std::vector<Output> outputs = run({0, 1, 2, 3, 4, 5, 6}), single = run({6, 3, 0}, 1);
  ASSERT_EQ(single.size(), 3u);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(single[k].id, outputs[6 - 3 * k].id);
    EXPECT_EQ(single[k].choice_logprob, outputs[6 - 3 * k].choice_logprob);
  }
}

TEST_F(compared_choices, take_the_letter_that_continues_the_prompt) {
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  const auto letters = [&](std::vector<int32_t> prompt, int64_t count) {
    return letter_tokens(tokenizer, prompt, count);
  };
  EXPECT_EQ(letters({0}, 3), (std::vector<int32_t>{6, 7, 8}));
  EXPECT_EQ(letters({0, 2}, 3), (std::vector<int32_t>{3, 4, 5}));      // after a blank
  EXPECT_EQ(letters({0, 11}, 2), (std::vector<int32_t>{3, 4}));        // after a line
  EXPECT_EQ(letters({0}, 5), (std::vector<int32_t>{3, 4, 5, 9, 10}));  // " D" is no token: all without the blank
  EXPECT_THROW(letters({0}, 6), Error);
}

TEST(choices, letters_are_found_where_every_text_begins_with_a_space_of_its_own) {
  Json json = read_json(testing::tokenizer_goldens() + "llama2-like/tokenizer.json", 1 << 20);
  const std::string space = "\u2581";
  json["model"]["vocab"][space + "A"] = 423;
  json["model"]["merges"].push_back(Json::array({space, "A"}));
  testing::TemporaryDirectory folder;
  testing::put_file(folder.path() + "/tokenizer.json", json.dump());
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  const std::vector<int32_t> colon = tokenizer.encode("is:"), line = tokenizer.encode("is:\n");
  EXPECT_EQ(letter_tokens(tokenizer, colon, 1), std::vector<int32_t>{423});
  EXPECT_EQ(letter_tokens(tokenizer, line, 1), std::vector<int32_t>{*tokenizer.id_of("A")});
}

}  // namespace
}  // namespace ucas
