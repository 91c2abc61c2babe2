#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

constexpr size_t kTextLimit = size_t{1} << 30;  // bytes; places in a piece are 32-bit

void check_id(int32_t id) {
  if (id < 0) throw Error(ErrorKind::tokenizer, str("the token id ", id, " is negative"));
}

}  // namespace

struct Tokenizer::Impl {
  std::string directory;
  std::optional<Bpe> bpe;
  std::optional<WordLevel> word_level;
  Splitter splitter;
  Normalizer normalizer;
  bool any_bytes = true;      // else bytes that are not UTF-8 have no token, and are read as U+FFFD
  bool some_missing = false;  // of bytes that UTF-8 can hold, in a byte-level vocabulary:
  std::array<bool, 256> is_missing = {};
  bool byte_spelled = false;
  AddedTokenFinder raw_added, normalized_added;
  TokenTexts texts;                                // [V] what the token decodes to
  std::vector<uint8_t> special;                    // [V]
  std::unordered_map<std::string, int32_t> names;  // added tokens and words
  std::vector<int32_t> prefix;
  std::optional<int32_t> eos, pad;

  void take_added_tokens(const TokenizerFile& file, std::vector<std::string>& spelling);
  void take_bpe(const TokenizerFile& file);
  void take_words(const TokenizerFile& file);
  void take_template(const TokenizerFile& file, size_t vocabulary);

  // Text without added tokens, already normalised. `first`: it begins the sequence.
  void encode_plain(std::string_view text, bool first, std::vector<int32_t>& ids) const {
    if (word_level) return word_level->encode(text, ids);
    const Splitter::Pieces pieces = splitter.cut(text, first);
    for (std::string_view piece : pieces.text) bpe->encode(piece, ids);
  }

  // Text without tokens that are looked for in the raw text. `origin`: of its bytes, or empty.
  void encode_raw(std::string_view text, bool as_text, bool first, std::string_view origin,
                  std::vector<int32_t>& ids) const {
    std::string normalized;
    if (normalizer.changes(text)) {
      normalized = normalizer.apply(text);
      // Which byte came from where is not known any more; what became a special token only now may be data.
      std::vector<std::string_view> before, after;
      if (!origin.empty()) normalized_added.specials_in(text, before);
      if (!origin.empty()) normalized_added.specials_in(normalized, after);
      as_text = as_text || after.size() > before.size() || origin.find(MarkedText::kData) != std::string_view::npos;
      text = normalized;
      origin = {};
    }
    if (normalized_added.empty()) return encode_plain(text, first, ids);
    for (const AddedTokenFinder::Piece& piece : normalized_added.cut(text, as_text, origin)) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
      } else {
        encode_plain(text.substr(piece.begin, piece.end - piece.begin), first && piece.begin == 0, ids);
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
    throw Error(ErrorKind::tokenizer, str(file.where, ": the highest id is ", highest, ", but there are only ", tokens,
                                          " tokens: some ids name no token"));
  }
  std::vector<std::string> spelling(static_cast<size_t>(highest) + 1);
  auto place = [&](const std::string& token, int32_t id) {
    if (!spelling[id].empty() && spelling[id] != token) {
      throw Error(ErrorKind::tokenizer, str(file.where, ": id ", id, " is both \"", printable(spelling[id]),
                                            "\" and \"", printable(token), "\""));
    }
    spelling[id] = token;
  };
  for (const auto& [token, id] : file.vocab) place(token, id);
  for (const AddedToken& token : file.added) place(token.content, token.id);
  auto gap = std::find(spelling.begin(), spelling.end(), "");
  if (gap != spelling.end()) {
    throw Error(ErrorKind::tokenizer, str(file.where, ": id ", gap - spelling.begin(), " names no token"));
  }
  return spelling;
}

// Bytes 0xC0, 0xC1 and 0xF5 to 0xFF are in no UTF-8 text.
bool in_utf8(uint8_t byte) { return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5); }

using TokenList = std::vector<std::pair<std::string, int32_t>>;

// The tokens of the model by their bytes.
TokenList byte_level_tokens(const TokenizerFile& file, const std::unordered_map<std::string, int32_t>& added) {
  TokenList tokens;
  tokens.reserve(file.vocab.size());
  for (const auto& [spelling, id] : file.vocab) {
    if (std::optional<std::string> bytes = bytes_of_spelling(spelling)) {
      tokens.emplace_back(std::move(*bytes), id);
    } else if (!added.contains(spelling)) {
      throw Error(ErrorKind::tokenizer, str(file.where, ": model.vocab: \"", printable(spelling),
                                            "\" is not spelled in the byte-level alphabet"));
    }
  }
  return tokens;
}

// `needed`: some text has no token of its own. Hugging Face would only notice when it meets such a text.
UnknownSymbols unknown_of(const TokenizerFile& file, bool needed) {
  UnknownSymbols rules{file.byte_fallback, file.fuse_unknown, std::nullopt};
  if (file.unknown.empty()) return rules;
  auto known = std::ranges::find(file.vocab, file.unknown, &std::pair<std::string, int32_t>::first);
  if (known == file.vocab.end()) {
    if (!needed) return rules;
    throw Error(ErrorKind::tokenizer,
                str(file.where, ": model.unk_token is \"", printable(file.unknown), "\", which model.vocab lacks"));
  }
  rules.token = known->second;
  return rules;
}

void add_merges(const TokenizerFile& file, bool byte_level, Bpe& bpe) {
  for (size_t i = 0; i < file.merges.size(); ++i) {
    const auto& [left, right] = file.merges[i];
    std::string wrong;
    if (!byte_level) {
      wrong = bpe.add_merge(left, right);
    } else {
      std::optional<std::string> a = bytes_of_spelling(left), b = bytes_of_spelling(right);
      wrong = a && b ? bpe.add_merge(*a, *b) : "not spelled in the byte-level alphabet";
    }
    if (!wrong.empty()) {
      throw Error(ErrorKind::tokenizer, str(file.where, ": model.merges[", i, "] (\"", printable(left), "\" \"",
                                            printable(right), "\"): ", wrong));
    }
  }
}

Bpe byte_level_bpe(const TokenizerFile& file, const std::unordered_map<std::string, int32_t>& added) {
  TokenList tokens = byte_level_tokens(file, added);
  std::array<bool, 256> there = {};
  for (const auto& [bytes, id] : tokens) {
    if (bytes.size() == 1) there[static_cast<unsigned char>(bytes[0])] = true;
  }
  bool needed = false;
  for (size_t b = 0; b < 256; ++b) needed = needed || (in_utf8(static_cast<uint8_t>(b)) && !there[b]);
  return Bpe(std::move(tokens), file.ignore_merges, Bpe::Start::bytes, unknown_of(file, needed));
}

Bpe make_bpe(const TokenizerFile& file, const std::unordered_map<std::string, int32_t>& added) {
  const bool byte_level = file.model == TokenizerFile::Model::byte_level_bpe;
  Bpe bpe = byte_level ? byte_level_bpe(file, added)
                       : Bpe(file.vocab, file.ignore_merges, Bpe::Start::characters, unknown_of(file, true));
  add_merges(file, byte_level, bpe);
  return bpe;
}

// A process may load the same file for the policy, a reference and a teacher.
void warn_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(message).second) warn(message);
}

// "4 6 19-20".
std::string ranges_in_words(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    size_t end = i + 1;
    while (end < bytes.size() && bytes[end] == bytes[i] + (end - i)) ++end;
    text += str(text.empty() ? "" : " ", int{bytes[i]});
    if (end - i > 1) text += str("-", int{bytes[end - 1]});
    i = end;
  }
  return text;
}

void warn_of_missing(const TokenizerFile& file, const std::vector<uint8_t>& missing) {
  warn_once(str(file.where, ": no token for ", missing.size(), " of the bytes that text can hold (",
                ranges_in_words(missing), "): ",
                file.unknown.empty() ? std::string("they are dropped from a text")
                                     : str("in a text each becomes \"", printable(file.unknown), "\""),
                ", as in Hugging Face tokenizers"));
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

// Before the vocabulary is read, after the normalizer: an added token goes before the tokens of the model.
void Tokenizer::Impl::take_added_tokens(const TokenizerFile& file, std::vector<std::string>& spelling) {
  for (const AddedToken& token : file.added) {
    auto [place, fresh] = names.emplace(token.content, token.id);
    if (!fresh && place->second != token.id) {
      throw Error(ErrorKind::tokenizer, str(file.where, ": added_tokens: \"", printable(token.content),
                                            "\" has two ids, ", place->second, " and ", token.id));
    }
    special[token.id] |= token.special;
    std::string searched = token.normalized ? normalizer.apply(token.content) : token.content;
    if (searched.empty()) {
      throw Error(ErrorKind::tokenizer,
                  str(file.where, ": added_tokens: \"", printable(token.content), "\" is empty after the normalizer"));
    }
    (token.normalized ? normalized_added : raw_added).add(token, searched);
    spelling[token.id] = searched;  // it decodes to what it was found as
  }
  for (const auto& [word, id] : file.vocab) {
    auto place = names.find(word);
    if (place != names.end() && place->second != id) {  // Hugging Face would silently take the model's id
      throw Error(ErrorKind::tokenizer, str(file.where, ": added_tokens: \"", printable(word), "\" has id ",
                                            place->second, ", but model.vocab says ", id));
    }
  }
}

void Tokenizer::Impl::take_bpe(const TokenizerFile& file) {
  bpe = make_bpe(file, names);
  byte_spelled = file.model == TokenizerFile::Model::byte_level_bpe;
  std::vector<uint8_t> missing = bpe->missing_bytes();
  any_bytes = missing.empty() && (byte_spelled || file.byte_fallback);
  if (byte_spelled) {
    std::erase_if(missing, [](uint8_t byte) { return !in_utf8(byte); });
    some_missing = !missing.empty();
    for (uint8_t byte : missing) is_missing[byte] = true;
    if (some_missing) warn_of_missing(file, missing);
  } else if (file.unknown.empty() && !any_bytes) {
    warn_once(str(file.where, ": characters that are no tokens of the vocabulary are dropped from a text, since ",
                  "model.unk_token is not set", file.byte_fallback ? " and not all \"<0x00>\" .. are there" : "",
                  "; Hugging Face tokenizers does the same"));
  }
  splitter = file.splitter;
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
  names.insert(words.begin(), words.end());
  word_level = WordLevel(words, unknown);
}

void Tokenizer::Impl::take_template(const TokenizerFile& file, size_t vocabulary) {
  prefix = file.prefix;
  for (int32_t id : prefix) {
    if (static_cast<size_t>(id) < vocabulary) continue;
    throw Error(ErrorKind::tokenizer,
                str(file.where, ": post_processor: the id ", id, " names no token; expected 0 .. ", vocabulary - 1));
  }
}

Tokenizer Tokenizer::load(const std::string& directory) {
  TokenizerFile file = read_tokenizer_file(directory);
  if (file.decoder.spaced) {
    warn_once(str(file.where,
                  ": \"decoder\" is null: a response is read as its tokens, as the vocabulary spells them, "
                  "with a space between; Hugging Face tokenizers does the same"));
  }
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  impl->normalizer = file.normalizer;
  std::vector<std::string> spelling = spellings_by_id(file);
  impl->special.resize(spelling.size());
  impl->take_added_tokens(file, spelling);
  file.model == TokenizerFile::Model::word_level ? impl->take_words(file) : impl->take_bpe(file);
  impl->take_template(file, spelling.size());
  impl->texts = TokenTexts(file.decoder, std::move(spelling));
  Tokenizer tokenizer(std::move(impl));
  auto resolve = [&](const char* key, const std::optional<std::string>& token) -> std::optional<int32_t> {
    if (!token) return std::nullopt;
    std::optional<int32_t> id = tokenizer.id_of(*token);
    if (!id) {
      throw Error(ErrorKind::tokenizer, str(path_join(directory, "tokenizer_config.json"), ": ", key, " is \"",
                                            printable(*token), "\", which is not in the vocabulary"));
    }
    return id;
  };
  tokenizer.impl_->eos = resolve("eos_token", file.eos);
  tokenizer.impl_->pad = resolve("pad_token", file.pad);
  return tokenizer;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, Special special, Place place) const {
  std::string repaired;
  if (!impl_->any_bytes && !valid_utf8(text)) text = repaired = replace_invalid(text);
  return encode_marked(text, special == Special::as_text, place == Place::beginning, {});
}

std::vector<int32_t> Tokenizer::encode(const MarkedText& text, Place place) const {
  const bool first = place == Place::beginning;
  if (impl_->any_bytes || valid_utf8(text.text)) return encode_marked(text.text, false, first, text.origin);
  MarkedText repaired;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.origin.find_first_not_of(text.origin[begin], begin), text.size());
    repaired.append(replace_invalid(text.text.substr(begin, end - begin)), text.origin[begin]);
    begin = end;
  }
  return encode_marked(repaired.text, false, first, repaired.origin);
}

std::vector<int32_t> Tokenizer::encode_marked(std::string_view text, bool as_text, bool first,
                                              std::string_view origin) const {
  if (text.size() > kTextLimit) {
    throw Error(ErrorKind::limit, str("a text of ", human_bytes(static_cast<double>(text.size())), "; at most ",
                                      human_bytes(static_cast<double>(kTextLimit)), " can be encoded at once"));
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3);
  if (impl_->raw_added.empty()) {
    impl_->encode_raw(text, as_text, first, origin, ids);
    return ids;
  }
  for (const AddedTokenFinder::Piece& piece : impl_->raw_added.cut(text, as_text, origin)) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
    } else {
      const size_t length = piece.end - piece.begin;
      impl_->encode_raw(text.substr(piece.begin, length), as_text, first && piece.begin == 0,
                        origin.empty() ? origin : origin.substr(piece.begin, length), ids);
    }
  }
  return ids;
}

std::vector<std::string_view> Tokenizer::specials_in(std::string_view text) const {
  std::vector<std::string_view> parts;
  impl_->raw_added.specials_in(text, parts);
  impl_->normalized_added.specials_in(text, parts);
  return parts;
}

std::vector<int32_t> Tokenizer::encode_prompt(std::string_view text, Special special) const {
  std::vector<int32_t> ids = encode(text, special);
  begin_prompt(ids);
  return ids;
}

void Tokenizer::begin_prompt(std::vector<int32_t>& ids) const {
  const std::vector<int32_t>& prefix = impl_->prefix;
  const bool there = ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  if (!there) ids.insert(ids.begin(), prefix.begin(), prefix.end());
}

const std::vector<int32_t>& Tokenizer::prefix() const { return impl_->prefix; }

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  TokenTexts::Joiner joiner(impl_->texts);
  for (int32_t id : ids) {
    check_id(id);
    if (id >= vocab_size() || (skip_special && impl_->special[id])) continue;
    joiner.add(id, text);
  }
  joiner.finish(text);
  return text;
}

std::string Tokenizer::token_text(int32_t id) const {
  check_id(id);
  return id < vocab_size() ? impl_->texts.bytes(id) : "";
}

int64_t Tokenizer::unencodable_bytes(std::string_view text) const {
  if (!impl_->some_missing) return 0;
  const std::string repaired = impl_->normalizer.apply(replace_invalid(text));
  return std::ranges::count_if(repaired, [&](char c) { return impl_->is_missing[static_cast<unsigned char>(c)]; });
}

bool Tokenizer::lacks_bytes() const { return impl_->some_missing; }

int64_t Tokenizer::vocab_size() const { return impl_->texts.size(); }

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  if (auto place = impl_->names.find(std::string(token)); place != impl_->names.end()) return place->second;
  if (!impl_->bpe) return std::nullopt;
  if (!impl_->byte_spelled) return impl_->bpe->find(token);
  std::optional<std::string> bytes = bytes_of_spelling(token);
  return bytes ? impl_->bpe->find(*bytes) : std::nullopt;
}

std::vector<int32_t> Tokenizer::eos_ids() const {
  return impl_->eos ? std::vector<int32_t>{*impl_->eos} : std::vector<int32_t>{};
}

std::optional<int32_t> Tokenizer::pad_id() const { return impl_->pad; }

const std::string& Tokenizer::directory() const { return impl_->directory; }

Tokenizer::Stream::Stream(const Tokenizer& tokenizer) : tokenizer_(&tokenizer), joiner_(tokenizer.impl_->texts) {}

std::string Tokenizer::Stream::push(int32_t id) {
  check_id(id);
  if (id < tokenizer_->vocab_size()) joiner_.add(id, held_);
  size_t ready = held_.size() - unfinished_tail(held_);
  std::string text = replace_invalid(std::string_view(held_).substr(0, ready));
  held_.erase(0, ready);
  return text;
}

std::string Tokenizer::Stream::finish() {
  joiner_.finish(held_);
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
