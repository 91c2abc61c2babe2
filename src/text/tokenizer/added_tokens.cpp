#include "text/tokenizer/added_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

bool word_before(std::string_view text, size_t at) {
  return at > 0 && (char_class(char_before(text, at).code) & kWord) != 0;
}

bool word_after(std::string_view text, size_t at) {
  return at < text.size() && (char_class(char_at(text, at).code) & kWord) != 0;
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token, std::string_view searched_text) {
  tree_.add(searched_text, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
}

std::vector<AddedTokenFinder::Piece> AddedTokenFinder::cut(std::string_view text, bool skip_special,
                                                           std::string_view origin) const {
  std::vector<Piece> pieces;
  size_t plain = 0;  // where the plain text that is not yet cut off begins
  size_t at = tree_.next_candidate(text, 0);
  for (; at < text.size(); at = tree_.next_candidate(text, at)) {
    PrefixTree::Match match = tree_.longest(text, at);
    if (match.length == 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + match.length;
    at = end;
    const AddedToken& token = tokens_[match.value];
    if (skip_special && token.special) continue;
    if (token.special && !origin.empty()) {
      const std::string_view from = origin.substr(begin, end - begin);
      if (from.find(MarkedText::kData) != std::string_view::npos) {
        // A token of the template may begin within characters that are partly data.
        if (from.find(MarkedText::kTemplate) != std::string_view::npos) at = begin + 1;
        continue;
      }
    }
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    while (token.lstrip && begin > plain) {
      Char before = char_before(text, begin);
      if ((char_class(before.code) & kSpace) == 0) break;
      begin -= before.length;
    }
    while (token.rstrip && end < text.size()) {
      Char after = char_at(text, end);
      if ((char_class(after.code) & kSpace) == 0) break;
      end += after.length;
    }
    begin = std::max(begin, plain);
    if (token.lstrip && begin >= end) continue;  // nothing but blanks that the token before took along
    if (plain < begin) pieces.push_back({plain, begin, -1});
    pieces.push_back({begin, end, token.id});
    plain = end;
  }
  if (plain < text.size()) pieces.push_back({plain, text.size(), -1});
  return pieces;
}

void AddedTokenFinder::specials_in(std::string_view text, std::vector<std::string_view>& parts) const {
  for (size_t at = tree_.next_candidate(text, 0); at < text.size(); at = tree_.next_candidate(text, at + 1)) {
    const PrefixTree::Match match = tree_.longest(text, at);
    if (match.length > 0 && tokens_[match.value].special) parts.push_back(text.substr(at, match.length));
  }
}

void PrefixTree::add(std::string_view word, int32_t value) {
  UCAS_CHECK(!word.empty() && value >= 0, "a word of the prefix tree needs bytes and a value");
  starts_[static_cast<unsigned char>(word[0])] = true;
  uint32_t node = 0;
  for (char byte : word) {
    auto [place, fresh] = edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(ends_.size()));
    if (fresh) ends_.push_back(-1);
    node = place->second;
  }
  ends_[node] = value;
}

PrefixTree::Match PrefixTree::longest(std::string_view text, size_t at) const {
  Match best;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    auto place = edges_.find(edge(node, text[i]));
    if (place == edges_.end()) break;
    node = place->second;
    if (ends_[node] >= 0) best = {i + 1 - at, ends_[node]};
  }
  return best;
}

size_t PrefixTree::next_candidate(std::string_view text, size_t at) const {
  while (at < text.size() && !starts_[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

std::string word_pattern(std::vector<std::string> words) {
  std::stable_sort(words.begin(), words.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  std::string pattern;
  for (const std::string& word : words) {
    if (!pattern.empty()) pattern += '|';
    for (char c : word) {
      if (std::string_view("\\.+*?()|[]{}^$").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

void write_word_level_tokenizer(const std::string& directory, std::span<const std::string> words,
                                const std::string& eos, const std::string& pad) {
  OrderedJson vocab = OrderedJson::object();
  OrderedJson added = OrderedJson::array();
  std::set<std::string> seen;
  auto add = [&](const std::string& word) {
    if (word.empty() || !valid_utf8(word)) {
      throw Error(ErrorKind::tokenizer, str("the word \"", printable(word), "\" is empty or not UTF-8"));
    }
    if (!seen.insert(word).second) {
      throw Error(ErrorKind::tokenizer, str("duplicate word \"", printable(word), "\" in the vocabulary"));
    }
    size_t id = vocab.size();
    vocab[word] = id;
  };
  for (const std::string& word : words) add(word);
  for (const std::string& special : {pad, eos}) {
    add(special);
    added.push_back({{"id", vocab.size() - 1},
                     {"content", special},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  OrderedJson split = {{"type", "Split"},
                       {"pattern", {{"Regex", word_pattern({words.begin(), words.end()})}}},
                       {"behavior", "Isolated"},
                       {"invert", false}};
  // "<unk>" is not in the vocabulary: text that is no word is an error, in Hugging Face as here.
  OrderedJson file = {{"version", "1.0"},
                      {"truncation", nullptr},
                      {"padding", nullptr},
                      {"added_tokens", added},
                      {"normalizer", nullptr},
                      {"pre_tokenizer", split},
                      {"post_processor", nullptr},
                      {"decoder", {{"type", "Fuse"}}},
                      {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}}}};
  OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                        {"clean_up_tokenization_spaces", false},
                        {"eos_token", eos},
                        {"pad_token", pad}};
  make_directories(directory);
  write_file(path_join(directory, "tokenizer.json"), json_text(file, 1) + "\n");
  write_file(path_join(directory, "tokenizer_config.json"), json_text(config, 1) + "\n");
}

WordLevel::WordLevel(const std::vector<std::pair<std::string, int32_t>>& words, std::optional<int32_t> unknown)
    : unknown_(unknown) {
  for (const auto& [word, id] : words) words_.add(word, id);
}

void WordLevel::encode(std::string_view text, std::vector<int32_t>& ids) const {
  for (size_t at = 0; at < text.size();) {
    PrefixTree::Match match = words_.longest(text, at);
    if (match.length > 0) {
      ids.push_back(match.value);
      at += match.length;
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && words_.longest(text, end).length == 0) ++end;
    if (!unknown_) {
      throw Error(
          ErrorKind::tokenizer,
          str("no word of the vocabulary starts with \"", printable(text.substr(at, end - at), 40), "\" (byte ", at,
              " of \"", printable(text, 80), "\"); this word-level tokenizer only knows the words of its own task"));
    }
    ids.push_back(*unknown_);
    at = end;
  }
}

}  // namespace ucas
