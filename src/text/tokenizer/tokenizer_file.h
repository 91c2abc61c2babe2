// tokenizer.json and tokenizer_config.json as data: read strictly, every component known by name or refused.
// Fed by Tokenizer::load; owns nothing afterwards.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "text/split/splitter.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/token_texts.h"

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
  std::vector<int32_t> prefix, suffix;  // what the post-processor puts around a text
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

// tokenizer.json read in one pass: its two big tables, model.vocab and model.merges, go straight into vectors and the
// rest becomes a document. (As one document Qwen2's file takes 0.3 s to read and free; this way 0.1 s.)
// As strict as base/text/json: UTF-8, no key twice, depth at most 64.

constexpr int64_t kMaxTokens = 4 << 20;

struct TokenizerTables {
  std::vector<std::pair<std::string, int32_t>> vocab;       // ids checked: 0 .. kMaxTokens - 1
  std::vector<std::pair<std::string, std::string>> merges;  // "a b" or ["a", "b"] in the file
};

// The document with an empty object or list in the place of each table.
nlohmann::json read_tokenizer_json(const std::string& path, int64_t limit, TokenizerTables& tables);

// The parts of a tokenizer.json that say how text is cut and joined: normalizer, pre_tokenizer, post_processor,
// decoder. Each is read strictly: a component or a setting that is not known here is refused by name,
// Error(ErrorKind::tokenizer). Fed by read_tokenizer_file.

[[noreturn]] void refuse_part(const JsonObject& node, const std::string& what);
std::string type_of_part(const JsonObject& node);
// Any other key is a setting that this program does not know, and would silently ignore.
void only_settings(const JsonObject& node, std::initializer_list<std::string_view> known);

void read_normalizer(const JsonObject& node, Normalizer& normalizer);
// {"Regex": ...} or {"String": ...} of a Split that isolates its matches, as the word-level form needs it.
std::string isolated_expression(const JsonObject& split);
// True: it ends in ByteLevel, so that the tokens of the model are spelled in the byte alphabet.
bool read_pre_tokenizer(const JsonObject& node, Splitter& splitter);
void read_post_processor(const JsonObject& node, TokenizerFile& file);
void read_decoder(const JsonObject& node, bool byte_level, DecoderRules& rules);

}  // namespace ucas
