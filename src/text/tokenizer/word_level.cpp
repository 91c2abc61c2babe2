#include "text/tokenizer/word_level.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

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
      throw Error(ErrorKind::tokenizer, str("the word \"", printable(word), "\" stands twice in the vocabulary"));
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
