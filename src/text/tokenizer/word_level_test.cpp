#include "text/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "support/temporary_directory.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {
namespace {

const std::vector<std::string> kWords = {" a", " b", "+1", "*2", "1", "12", "\\boxed{", "}", ".\n", "\n"};
using Ids = std::vector<int32_t>;

TEST(word_level, the_longest_word_comes_first_in_the_expression) {
  EXPECT_EQ(word_pattern({"1", "12", "*2", "}", "\\boxed{"}), "\\\\boxed\\{|\\*2|12|1|\\}");
}

TEST(word_level, a_written_tokenizer_loads_and_takes_the_longest_word) {
  testing::TemporaryDirectory directory;
  write_word_level_tokenizer(directory.path(), kWords, "<eos>", "<pad>");
  Tokenizer tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer.vocab_size(), 12);
  EXPECT_EQ(tokenizer.pad_id(), 10);
  EXPECT_EQ(tokenizer.eos_ids(), Ids{11});
  EXPECT_EQ(tokenizer.id_of(" b"), 1);
  EXPECT_EQ(tokenizer.id_of("b"), std::nullopt);
  std::string text = " a12 b*2 a+1.\n\n\\boxed{121}<eos>";
  Ids ids = tokenizer.encode(text);
  EXPECT_EQ(ids, (Ids{0, 5, 1, 3, 0, 2, 8, 9, 6, 5, 4, 7, 11}));
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(tokenizer.decode(ids, true), text.substr(0, text.size() - 5));
}

TEST(word_level, text_that_is_no_word_is_an_error_that_shows_it) {
  testing::TemporaryDirectory directory;
  write_word_level_tokenizer(directory.path(), kWords, "<eos>", "<pad>");
  Tokenizer tokenizer = Tokenizer::load(directory.path());
  try {
    tokenizer.encode(" a1 x b");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "tokenizer");
    EXPECT_NE(std::string(error.what()).find("\" x\" (byte 3"), std::string::npos) << error.what();
  }
  // A special token as plain text has no words either.
  EXPECT_THROW(tokenizer.encode("<eos>", Tokenizer::Special::as_text), Error);
}

TEST(word_level, doubled_and_empty_words_are_refused) {
  testing::TemporaryDirectory directory;
  EXPECT_THROW(write_word_level_tokenizer(directory.path(), std::vector<std::string>{"a", "a"}, "e", "p"), Error);
  EXPECT_THROW(write_word_level_tokenizer(directory.path(), std::vector<std::string>{"a", ""}, "e", "p"), Error);
  EXPECT_THROW(write_word_level_tokenizer(directory.path(), std::vector<std::string>{"a"}, "a", "p"), Error);
  EXPECT_FALSE(exists(path_join(directory.path(), "tokenizer.json")));
}

TEST(word_level, an_expression_that_does_not_fit_the_vocabulary_is_refused) {
  testing::TemporaryDirectory directory;
  write_word_level_tokenizer(directory.path(), kWords, "<eos>", "<pad>");
  std::string path = path_join(directory.path(), "tokenizer.json");
  std::string file = read_file(path);
  size_t at = file.find("|12|");
  ASSERT_NE(at, std::string::npos);
  write_file(path, file.replace(at, 4, "|13|"));
  EXPECT_THROW(Tokenizer::load(directory.path()), Error);
}

}  // namespace
}  // namespace ucas
