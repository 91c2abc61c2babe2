// tokenizer.json and tokenizer_config.json as data: read strictly, every component known by name or refused.
// Fed by Tokenizer::load; owns nothing afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/pretokenizer.h"

namespace ucas {

struct TokenizerFile {
  enum class Model { bpe, word_level };
  std::string where;  // path of tokenizer.json, for messages
  Model model = Model::bpe;
  std::vector<std::pair<std::string, int32_t>> vocab;       // as spelled in the file
  std::vector<std::pair<std::string, std::string>> merges;  // first to last, as spelled in the file
  bool ignore_merges = false;                               // a piece that is a token is not merged from its bytes
  std::string unknown;                                      // word level: token for other text, "" if there is none
  bool nfc = false;
  bool add_prefix_space = false;
  const SplitPattern* pattern = nullptr;  // BPE only
  std::vector<AddedToken> added;
  std::optional<std::string> eos, pad;
};

TokenizerFile read_tokenizer_file(const std::string& directory);

}  // namespace ucas
