#include "cli/gguf_checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "support/temporary_directory.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {
namespace {

// tools/make_gguf_goldens.py: the ids of `tokenizers` for the tables of the file, of Gemma's with the merges that
// transformers makes of its scores.
TEST(gguf_checkpoint, its_tokenizer_gives_the_ids_of_the_tables_in_the_file) {
  for (const char* name : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const std::string golden = str(UCAS_SOURCE_DIR, "/tests/goldens/gguf/", name);
    const GgufCheckpoint checkpoint(golden + ".gguf", "float32");
    const testing::TemporaryDirectory folder;
    save_tokenizer(checkpoint.tokenizer, folder.path());
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    const Json expected = parse_json(read_file(golden + ".json"), name);
    ASSERT_FALSE(expected["ids"].empty());
    for (const Json& row : expected["ids"]) {
      const auto text = row["text"].get<std::string>();
      const auto ids = tokenizer.encode(text);
      EXPECT_EQ(ids, row["ids"].get<std::vector<int32_t>>()) << name << ": " << printable(text);
      if (name == std::string("gemma3")) {
        EXPECT_EQ(tokenizer.decode(ids), text);
      }
    }
  }
}

TEST(gguf_checkpoint, gemma_texts_begin_with_its_token) {
  const GgufCheckpoint checkpoint(str(UCAS_SOURCE_DIR, "/tests/goldens/gguf/gemma3.gguf"), "float32");
  const testing::TemporaryDirectory folder;
  save_tokenizer(checkpoint.tokenizer, folder.path());
  EXPECT_EQ(Tokenizer::load(folder.path()).prefix(), std::vector<int32_t>{1});
}

}  // namespace
}  // namespace ucas
