#include "text/tokenizer/tokenizer_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "support/temporary_directory.h"
#include "support/tokenizer_goldens.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {
namespace {

// The tables of a golden tokenizer, as another program's file would hold them.
TokenizerTablesOfOthers tables_of(const std::string& golden, const std::string& pre) {
  const std::string path = testing::tokenizer_goldens() + golden + "/tokenizer.json";
  const Json json = parse_json(read_file(path), path);
  TokenizerTablesOfOthers tables;
  tables.where = golden + ".gguf";
  tables.pre = pre;
  const auto put = [&](const std::string& token, size_t id, TokenKind kind) {
    if (id >= tables.tokens.size()) {
      tables.tokens.resize(id + 1);
      tables.kinds.resize(id + 1, TokenKind::normal);
    }
    tables.tokens[id] = token;
    tables.kinds[id] = kind;
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) put(token, id.get<size_t>(), TokenKind::normal);
  for (const Json& added : json["added_tokens"]) {
    put(added["content"].get<std::string>(), added["id"].get<size_t>(),
        added["special"].get<bool>() ? TokenKind::control : TokenKind::user_defined);
  }
  for (const Json& merge : json["model"]["merges"]) {
    tables.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return tables;
}

struct Written {
  const char *golden, *pre;
};
class TokenizerWriter : public ::testing::TestWithParam<Written> {};

TEST_P(TokenizerWriter, encodes_as_the_published_kind_whose_tables_it_was_given) {
  const testing::TemporaryDirectory folder;
  save_tokenizer(write_tokenizer(tables_of(GetParam().golden, GetParam().pre)), folder.path());
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  const std::string path = testing::tokenizer_goldens() + GetParam().golden + "/cases.jsonl";
  size_t rows = 0;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.empty()) continue;
    const Json row = parse_json(line, path);
    EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>()), row["ids"].get<testing::Ids>())
        << printable(row["text"].get<std::string>());
    ++rows;
  }
  EXPECT_GT(rows, 180u);
}

INSTANTIATE_TEST_SUITE_P(goldens, TokenizerWriter,
                         ::testing::Values(Written{"qwen2-like", "qwen2"}, Written{"llama3-like", "llama-bpe"},
                                           Written{"tekken-like", "tekken"},
                                           Written{"deepseek-coder-like", "deepseek-coder"}));

TEST(tokenizer_writer, a_text_begins_with_the_token_where_the_file_or_the_model_says_so) {
  const auto prefix = [](TokenizerTablesOfOthers tables) {
    const testing::TemporaryDirectory folder;
    save_tokenizer(write_tokenizer(std::move(tables)), folder.path());
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    return std::pair(tokenizer.prefix(), tokenizer.suffix());
  };
  TokenizerTablesOfOthers tables = tables_of("llama3-like", "llama-bpe");
  tables.begin = 420;
  tables.end = 421;
  EXPECT_EQ(prefix(tables), (std::pair(testing::Ids{420}, testing::Ids{}))) << "models of llama-bpe do";
  tables.begins = false;
  EXPECT_EQ(prefix(tables), (std::pair(testing::Ids{}, testing::Ids{})));
  tables.ends = true;
  EXPECT_EQ(prefix(tables), (std::pair(testing::Ids{}, testing::Ids{421})));
  tables = tables_of("qwen2-like", "qwen2");
  tables.begin = 420;
  EXPECT_EQ(prefix(tables), (std::pair(testing::Ids{}, testing::Ids{}))) << "models of qwen2 do not";
  tables.begins = true;
  EXPECT_EQ(prefix(tables), (std::pair(testing::Ids{420}, testing::Ids{})));
}

TEST(tokenizer_writer, rows_that_pad_the_embedding_are_no_tokens) {
  TokenizerTablesOfOthers tables = tables_of("qwen2-like", "qwen2");
  const size_t real = tables.tokens.size();
  for (int i = 0; i < 3; ++i) {
    tables.tokens.push_back(str("[PAD", tables.tokens.size(), "]"));
    tables.kinds.push_back(TokenKind::unused);
  }
  const testing::TemporaryDirectory folder;
  save_tokenizer(write_tokenizer(tables), folder.path());
  EXPECT_EQ(Tokenizer::load(folder.path()).vocab_size(), static_cast<int64_t>(real));
}

}  // namespace
}  // namespace ucas
