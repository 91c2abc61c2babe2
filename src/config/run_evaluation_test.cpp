#include "config/run_evaluation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ucas {
namespace {

// What a shell makes of a word.
std::string unquoted(const std::string& word) {
  std::string out;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\') {
      out += word[++i];
      continue;
    }
    if (word[i] != '\'') {
      out += word[i];
      continue;
    }
    while (word[++i] != '\'') out += word[i];
  }
  return out;
}

std::string text_from(const std::vector<uint8_t>& letters) {
  constexpr std::string_view kAlphabet = "ab1 \n\t\r,\"'[]\\{}$#=-.:/<>|\x7f\x01";
  std::string out;
  for (const uint8_t letter : letters) out += kAlphabet[letter % kAlphabet.size()];
  return out;
}

// The line that a training prints at its end.
RC_GTEST_PROP(run_evaluation, every_printed_option_reads_back_as_it_was,
              (std::vector<std::vector<uint8_t>> stops, std::vector<std::vector<uint8_t>> files,
               std::vector<uint8_t> column)) {
  TrainConfig config;
  for (const auto& letters : stops) {
    if (!letters.empty()) config.rollout.stop.push_back(text_from(letters));
  }
  for (const auto& letters : files) {
    if (!letters.empty()) config.data.val_files.push_back(text_from(letters));
  }
  if (!column.empty()) config.data.columns.problem = text_from(column);
  std::vector<Setting> read = evaluation_settings(config);
  for (Setting& setting : read) setting.value = unquoted(shell_word(std::get<std::string>(setting.value)));
  EvaluateOptions options;
  ucas::apply(options, read);
  const std::vector<FieldValue> got = fields_of(options), wanted = fields_of(evaluation_of(config));
  for (size_t i = 0; i < wanted.size(); ++i)
    RC_ASSERT(got[i].key + " " + got[i].value == wanted[i].key + " " + wanted[i].value);
}

// Of any option of a training, as a user types it.
RC_GTEST_PROP(run_evaluation, lists_keep_white_space_and_escapes, (std::vector<std::vector<uint8_t>> stops)) {
  TrainConfig config;
  for (const auto& letters : stops) config.rollout.stop.push_back(text_from(letters));
  for (const FieldValue& field : fields_of(config)) {
    if (field.key != "rollout.stop") continue;
    TrainConfig read;
    ucas::apply(read, {Setting{field.key, field.value, "--" + field.key, true}});
    RC_ASSERT(read.rollout.stop == config.rollout.stop);
  }
}

TEST(run_evaluation, a_text_of_white_space_is_a_list_of_one) {
  const auto list = [](const char* typed) {
    TrainConfig config;
    ucas::apply(config, {Setting{"rollout.stop", std::string(typed), "--rollout.stop", true}});
    return config.rollout.stop;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(list("\n\n"), Texts{"\n\n"});
  EXPECT_EQ(list("24\n"), Texts{"24\n"});
  EXPECT_EQ(list(" Question:"), Texts{" Question:"});
  EXPECT_EQ(list(R"(["\n\n", "a,b"])"), (Texts{"\n\n", "a,b"}));
  EXPECT_EQ(list(R"("\n",x)"), (Texts{"\n", "x"}));
  EXPECT_EQ(list("a, b ,c"), (Texts{"a", "b", "c"}));
  EXPECT_EQ(list("\n,\t"), (Texts{"\n", "\t"}));
  EXPECT_EQ(list("[ a , b ]"), (Texts{"a", "b"}));
  EXPECT_EQ(list(R"(\n)"), Texts{R"(\n)"}) << "without quotes nothing is an escape";
  EXPECT_EQ(list(""), Texts{});
  EXPECT_EQ(list("[]"), Texts{});
}

}  // namespace
}  // namespace ucas
