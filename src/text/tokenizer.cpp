#include "text/tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/tokenizer_file.h"
#include "text/unicode.h"
#include "text/word_level.h"

namespace ucas {

namespace {

constexpr size_t kTextLimit = size_t{1} << 30;  // bytes; places in a piece are 32-bit

}  // namespace

struct Tokenizer::Impl {
  std::string directory;
  std::optional<Bpe> bpe;
  std::optional<WordLevel> word_level;
  const SplitPattern* pattern = nullptr;
  bool nfc = false, add_prefix_space = false;
  AddedTokenFinder raw_added, normalized_added;
  std::vector<std::string> bytes;                  // [V] what the token decodes to
  std::vector<uint8_t> special;                    // [V]
  std::unordered_map<std::string, int32_t> names;  // tokens that are not spelled in the byte alphabet: added, words
  std::optional<int32_t> eos, pad;

  void take_added_tokens(const TokenizerFile& file);
  void take_bpe(const TokenizerFile& file);
  void take_words(const TokenizerFile& file);

  // Text without added tokens, already normalised.
  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const {
    if (word_level) return word_level->encode(text, ids);
    std::string prefixed;
    if (add_prefix_space && !text.empty() && text[0] != ' ') text = prefixed = str(' ', text);
    for (size_t at = 0; at < text.size();) {
      size_t end = pattern->piece_end(text, at);
      bpe->encode(text.substr(at, end - at), ids);
      at = end;
    }
  }

  // Text without tokens that are looked for in the raw text.
  void encode_raw(std::string_view text, bool as_text, std::vector<int32_t>& ids) const {
    std::string normalized;
    if (nfc && may_change_under_nfc(text)) text = normalized = ucas::nfc(text);
    if (normalized_added.empty()) return encode_plain(text, ids);
    for (const AddedTokenFinder::Piece& piece : normalized_added.cut(text, as_text)) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
      } else {
        encode_plain(text.substr(piece.begin, piece.end - piece.begin), ids);
      }
    }
  }
};

namespace {

// Every id from 0 to the highest names one token, and no two tokens share an id or a spelling.
std::vector<std::string> spellings_by_id(const TokenizerFile& file) {
  int32_t highest = 0;
  for (const auto& [token, id] : file.vocab) highest = std::max(highest, id);
  for (const AddedToken& token : file.added) highest = std::max(highest, token.id);
  size_t tokens = file.vocab.size() + file.added.size();
  if (static_cast<size_t>(highest) >= tokens) {
    throw Error("tokenizer", str(file.where, ": the highest id is ", highest, ", but there are only ", tokens,
                                 " tokens: some ids name no token"));
  }
  std::vector<std::string> spelling(static_cast<size_t>(highest) + 1);
  auto place = [&](const std::string& token, int32_t id) {
    if (!spelling[id].empty() && spelling[id] != token) {
      throw Error("tokenizer", str(file.where, ": id ", id, " is both \"", printable(spelling[id]), "\" and \"",
                                   printable(token), "\""));
    }
    spelling[id] = token;
  };
  for (const auto& [token, id] : file.vocab) place(token, id);
  for (const AddedToken& token : file.added) place(token.content, token.id);
  auto gap = std::find(spelling.begin(), spelling.end(), "");
  if (gap != spelling.end()) {
    throw Error("tokenizer", str(file.where, ": id ", gap - spelling.begin(), " names no token"));
  }
  return spelling;
}

Bpe make_bpe(const TokenizerFile& file, const std::unordered_map<std::string, int32_t>& added) {
  std::vector<std::pair<std::string, int32_t>> tokens;
  tokens.reserve(file.vocab.size());
  for (const auto& [spelling, id] : file.vocab) {
    if (std::optional<std::string> bytes = bytes_of_spelling(spelling)) {
      tokens.emplace_back(std::move(*bytes), id);
    } else if (!added.contains(spelling)) {
      throw Error("tokenizer", str(file.where, ": model.vocab: \"", printable(spelling),
                                   "\" is not spelled in the byte-level alphabet"));
    }
  }
  Bpe bpe(std::move(tokens), file.ignore_merges);
  if (bpe.doubled()) {
    throw Error("dup_key", str(file.where, ": model.vocab: the token \"", printable(spelling_of_bytes(*bpe.doubled())),
                               "\" stands twice"));
  }
  if (std::optional<uint8_t> byte = bpe.missing_byte()) {
    throw Error("tokenizer", str(file.where, ": model.vocab: no token for the byte ", int{*byte}, " (\"",
                                 spelling_of_bytes(std::string(1, static_cast<char>(*byte))),
                                 "\"); text that holds it could not be encoded"));
  }
  bpe.reserve_merges(file.merges.size());
  for (size_t i = 0; i < file.merges.size(); ++i) {
    const auto& [left, right] = file.merges[i];
    std::optional<std::string> a = bytes_of_spelling(left), b = bytes_of_spelling(right);
    std::string wrong = a && b ? bpe.add_merge(*a, *b) : "not spelled in the byte-level alphabet";
    if (!wrong.empty()) {
      throw Error("tokenizer", str(file.where, ": model.merges[", i, "] (\"", printable(left), "\" \"",
                                   printable(right), "\"): ", wrong));
    }
  }
  return bpe;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

// Before the vocabulary is read: an added token goes before the tokens of the model.
void Tokenizer::Impl::take_added_tokens(const TokenizerFile& file) {
  for (const AddedToken& token : file.added) {
    auto [place, fresh] = names.emplace(token.content, token.id);
    if (!fresh && place->second != token.id) {
      throw Error("tokenizer", str(file.where, ": added_tokens: \"", printable(token.content), "\" has two ids, ",
                                   place->second, " and ", token.id));
    }
    special[token.id] |= token.special;
    std::string searched = token.normalized && file.nfc ? ucas::nfc(token.content) : token.content;
    (token.normalized ? normalized_added : raw_added).add(token, searched);
    bytes[token.id] = searched;
  }
  for (const auto& [word, id] : file.vocab) {
    auto place = names.find(word);
    if (place != names.end() && place->second != id) {  // Hugging Face would silently take the model's id
      throw Error("tokenizer", str(file.where, ": added_tokens: \"", printable(word), "\" has id ", place->second,
                                   ", but model.vocab says ", id));
    }
  }
}

void Tokenizer::Impl::take_bpe(const TokenizerFile& file) {
  bpe = make_bpe(file, names);
  // Added tokens are written as text, yet Hugging Face reads them in the byte alphabet too, wherever that is possible.
  for (std::string& spelling : bytes) {
    if (std::optional<std::string> spelled = bytes_of_spelling(spelling)) spelling = std::move(*spelled);
  }
}

void Tokenizer::Impl::take_words(const TokenizerFile& file) {
  std::vector<std::pair<std::string, int32_t>> words;
  std::optional<int32_t> unknown;
  for (const auto& [word, id] : file.vocab) {
    if (word == file.unknown) {
      unknown = id;
    } else if (!names.contains(word)) {
      words.emplace_back(word, id);
    }
  }
  for (const auto& [word, id] : words) {
    if (!names.emplace(word, id).second) {
      throw Error("dup_key", str(file.where, ": model.vocab: the word \"", printable(word), "\" stands twice"));
    }
  }
  word_level = WordLevel(words, unknown);
}

Tokenizer Tokenizer::load(const std::string& directory) {
  TokenizerFile file = read_tokenizer_file(directory);
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  impl->pattern = file.pattern;
  impl->nfc = file.nfc;
  impl->add_prefix_space = file.add_prefix_space;
  impl->bytes = spellings_by_id(file);
  impl->special.resize(impl->bytes.size());
  impl->take_added_tokens(file);
  file.model == TokenizerFile::Model::bpe ? impl->take_bpe(file) : impl->take_words(file);
  Tokenizer tokenizer(std::move(impl));
  auto resolve = [&](const char* key, const std::optional<std::string>& token) -> std::optional<int32_t> {
    if (!token) return std::nullopt;
    std::optional<int32_t> id = tokenizer.id_of(*token);
    if (!id) {
      throw Error("tokenizer", str(path_join(directory, "tokenizer_config.json"), ": ", key, " is \"",
                                   printable(*token), "\", which is not in the vocabulary"));
    }
    return id;
  };
  tokenizer.impl_->eos = resolve("eos_token", file.eos);
  tokenizer.impl_->pad = resolve("pad_token", file.pad);
  return tokenizer;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, Special special) const {
  if (text.size() > kTextLimit) {
    throw Error("limit", str("a text of ", human_bytes(static_cast<double>(text.size())), "; at most ",
                             human_bytes(static_cast<double>(kTextLimit)), " can be encoded at once"));
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3);
  bool as_text = special == Special::as_text;
  if (impl_->raw_added.empty()) {
    impl_->encode_raw(text, as_text, ids);
    return ids;
  }
  for (const AddedTokenFinder::Piece& piece : impl_->raw_added.cut(text, as_text)) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
    } else {
      impl_->encode_raw(text.substr(piece.begin, piece.end - piece.begin), as_text, ids);
    }
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  for (int32_t id : ids) {
    if (id < 0) throw Error("tokenizer", str("the token id ", id, " is negative"));
    if (id >= vocab_size() || (skip_special && impl_->special[id])) continue;
    text += impl_->bytes[id];
  }
  return text;
}

std::string Tokenizer::token_text(int32_t id) const { return decode(std::span(&id, 1)); }

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(impl_->bytes.size()); }

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  if (auto place = impl_->names.find(std::string(token)); place != impl_->names.end()) return place->second;
  if (!impl_->bpe) return std::nullopt;
  std::optional<std::string> bytes = bytes_of_spelling(token);
  return bytes ? impl_->bpe->find(*bytes) : std::nullopt;
}

std::vector<int32_t> Tokenizer::eos_ids() const {
  return impl_->eos ? std::vector<int32_t>{*impl_->eos} : std::vector<int32_t>{};
}

std::optional<int32_t> Tokenizer::pad_id() const { return impl_->pad; }

const std::string& Tokenizer::directory() const { return impl_->directory; }

std::string Tokenizer::Stream::push(int32_t id) {
  held_ += tokenizer_->token_text(id);
  size_t ready = held_.size() - unfinished_tail(held_);
  std::string text = replace_invalid(std::string_view(held_).substr(0, ready));
  held_.erase(0, ready);
  return text;
}

std::string Tokenizer::Stream::finish() {
  std::string text = replace_invalid(held_);
  held_.clear();
  return text;
}

const std::vector<std::string>& tokenizer_files() {
  static const std::vector<std::string> names = {
      "tokenizer.json",    "tokenizer_config.json", "special_tokens_map.json", "vocab.json",        "merges.txt",
      "added_tokens.json", "tokenizer.model",       "chat_template.jinja",     "chat_template.json"};
  return names;
}

void copy_tokenizer_files(const std::string& from, const std::string& to) {
  for (const std::string& name : tokenizer_files()) {
    std::string source = path_join(from, name);
    if (exists(source)) write_file(path_join(to, name), read_file(source));
  }
}

}  // namespace ucas
