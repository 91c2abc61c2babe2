// tokenizer.json of a BPE, byte-level or of SentencePiece's kind, from its bare tables, as files of other programs hold
// them: tokens by id, their kinds, merges, and GGML's name of how text is cut before it (tokenizer.ggml.pre). The
// components are those of the tokenizer.json that the named models are published with. Errors: tokenizer, dup_key;
// unsupported, for a name that is not in the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ucas {

// As GGUF numbers them; control and user_defined are found in a text before it is cut, control are special.
enum class TokenKind : uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct TokenizerTablesOfOthers {
  std::string where;                // of messages
  std::string pre;                  // "smollm"
  std::vector<std::string> tokens;  // by id, in the byte-level alphabet; control and user-defined ones as they are
  std::vector<TokenKind> kinds;     // of each
  std::vector<std::string> merges;  // "a b"
  std::vector<float> scores;        // of each token: it is of SentencePiece's kind, as Gemma's; merges follow from them
  std::optional<int64_t> begin, end, pad, unknown;  // ids
  std::optional<bool> begins, ends;                 // is a text begun, ended with them? As the model of `pre` has it
  std::string chat_template;
  int64_t longest = 0;  // tokens of a text
};

struct TokenizerTexts {
  std::string tokenizer, config, chat_template;  // the last one "" if there is none
};
TokenizerTexts write_tokenizer(TokenizerTablesOfOthers tables);
// The other way round: the tables of a directory with a tokenizer.json, filled up with unused tokens to `rows`. Errors:
// unsupported, of no byte-level BPE, of a splitting that has no name, of tokens around a text other than a first and a
// last one.
TokenizerTablesOfOthers tables_for_others(const std::string& directory, int64_t rows);
// Writes the files that are not empty: tokenizer.json, tokenizer_config.json, chat_template.jinja.
void save_tokenizer(const TokenizerTexts& texts, const std::string& directory);

}  // namespace ucas
