// tokenizer.json and tokenizer_config.json as data: read strictly, every component known by name or refused.
// Fed by Tokenizer::load; owns nothing afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/split/splitter.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/normalizer.h"

namespace ucas {

struct TokenizerFile {
  enum class Model { byte_level_bpe, character_bpe, word_level };
  std::string where;  // path of tokenizer.json, for messages
  Model model = Model::byte_level_bpe;
  std::vector<std::pair<std::string, int32_t>> vocab;       // as spelled in the file
  std::vector<std::pair<std::string, std::string>> merges;  // first to last, as spelled in the file
  bool ignore_merges = false;                               // a piece that is a token is not merged from its bytes
  bool byte_fallback = false, fuse_unknown = false;         // of BPE that starts from characters
  std::string unknown;                                      // token for other text, "" if there is none
  Normalizer normalizer;
  Splitter splitter;  // BPE only
  DecoderRules decoder;
  std::vector<AddedToken> added;
  std::vector<int32_t> prefix;  // what the post-processor puts before a text
  std::optional<std::string> eos, pad;
};

// Of a checkpoint directory, or of a tokenizer.json.
TokenizerFile read_tokenizer_file(const std::string& path);

// What a checkpoint says of chats: its template, from chat_template.jinja or tokenizer_config.json ("" = none), the
// file it was in, and the special tokens that templates name: bos_token, eos_token, pad_token, unk_token, as far as
// there.
struct ChatFiles {
  std::string text, where;
  std::vector<std::pair<std::string, std::string>> tokens;
};
ChatFiles read_chat_files(const std::string& directory);

}  // namespace ucas
