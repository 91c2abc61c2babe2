#include "text/stop_texts.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/temporary_directory.h"
#include "text/tokenizer/added_tokens.h"

namespace ucas {
namespace {

TEST(stop_texts, a_response_ends_at_the_token_that_completes_one_however_it_is_cut_into_tokens) {
  testing::TemporaryDirectory directory;
  const std::vector<std::string> words = {"</", "answer", ">", "x"};
  write_word_level_tokenizer(directory.path(), words, "<eos>", "<pad>");
  const Tokenizer tokenizer = Tokenizer::load(directory.path());
  const auto ids = [&](const std::vector<std::string>& of) {
    std::vector<int32_t> out;
    for (const std::string& word : of) out.push_back(*tokenizer.id_of(word));
    return out;
  };
  const std::string text = tokenizer.decode(ids({"</", "answer", ">"}));
  const StopTexts stops(tokenizer, {text});
  std::vector<int32_t> response;
  for (int i = 0; i < 40; ++i) response.push_back(ids({"x"})[0]);
  for (int32_t id : ids({"</", "answer"})) {
    response.push_back(id);
    EXPECT_FALSE(stops.end(response));
  }
  response.push_back(ids({">"})[0]);
  EXPECT_TRUE(stops.end(response));
  EXPECT_FALSE(stops.end({}));
  EXPECT_FALSE(StopTexts(tokenizer, {}).end(response));
  EXPECT_THROW(StopTexts(tokenizer, {""}), Error);
}

}  // namespace
}  // namespace ucas
