#include "cli/options/train_options.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace ucas {
namespace {

SftOptions parse(const std::vector<std::string>& words) {
  SftOptions options;
  ucas::apply(options, parse_command_line(words, {}).settings);
  options.validate();
  return options;
}

void expect_refused(const std::vector<std::string>& words, const std::string& says) {
  try {
    parse(words);
    ADD_FAILURE() << "accepted: " << says;
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "config");
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
  }
}

TEST(sft_options, the_recipe_of_the_embedded_task_fits_on_a_command_line) {
  SftOptions o = parse({"--init",
                        "qwen2",
                        "--model.hidden_size",
                        "64",
                        "--tokenizer",
                        "tok",
                        "--data",
                        "a.jsonl,b.jsonl",
                        "--steps",
                        "608,152",
                        "--out",
                        "m",
                        "--optimizer.lr",
                        "5e-3",
                        "--optimizer.beta2",
                        "0.98",
                        "--optimizer.warmup_steps",
                        "40",
                        "--optimizer.min_lr_ratio",
                        "0.05",
                        "--batch_size",
                        "112"});
  EXPECT_EQ(o.sft.data, (std::vector<std::string>{"a.jsonl", "b.jsonl"}));
  EXPECT_EQ(o.sft.steps, (std::vector<int64_t>{608, 152}));
  EXPECT_EQ(o.shape.hidden_size, 64);
  EXPECT_EQ(o.sft.optimizer.decay, Decay::matrices);
  EXPECT_EQ(o.sft.optimizer.schedule, Schedule::cosine);
}

TEST(sft_options, what_does_not_fit_together_is_refused_with_both_sides) {
  expect_refused({"--data", "a", "--out", "m"}, "either --model DIR or --init");
  expect_refused({"--model", "x", "--init", "qwen2", "--data", "a", "--out", "m"}, "either --model DIR or --init");
  expect_refused({"--init", "gpt", "--tokenizer", "t", "--data", "a", "--out", "m"},
                 "expected one of qwen2, qwen3, llama, mistral, gemma3_text, smollm3, granite, olmo2, olmo3");
  expect_refused({"--init", "qwen2", "--data", "a", "--out", "m"}, "--tokenizer");
  expect_refused({"--model", "x", "--data", "a"}, "--out");
  expect_refused({"--model", "x", "--out", "m"}, "--data");
  expect_refused({"--model", "x", "--data", "a,b", "--steps", "5", "--out", "m"}, "1 entries and data has 2");
  expect_refused({"--model", "x", "--data", "a", "--max_length", "100", "--max_tokens", "50", "--out", "m"},
                 "max_tokens = 50");
  expect_refused(
      {"--init", "qwen2", "--model.num_attention_heads", "5", "--tokenizer", "t", "--data", "a", "--out", "m"},
      "num_attention_heads = 5");
  expect_refused({"--model", "x", "--data", "a", "--out", "m", "--optimiser.lr", "1"}, "did you mean --optimizer.lr");
}

TEST(sft_options, the_help_lists_every_option) {
  std::string help = options_help(SftOptions());
  for (const FieldValue& field : fields_of(SftOptions())) {
    EXPECT_NE(help.find("--" + field.key + " "), std::string::npos) << field.key;
  }
}

}  // namespace
}  // namespace ucas
