// The normalizer of a tokenizer.json: what happens to a text before it is cut into pieces. Steps in order: NFC (of
// Unicode 9, text/unicode/unicode.h), Prepend (before a text that is not empty), Replace (each match of a literal or an
// expression). Threads: const functions from any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/split/regex.h"

namespace ucas {

struct NfcStep {};
struct PrependStep {
  std::string content;
};
struct ReplaceStep {
  std::variant<std::string, Regex> pattern;
  std::string content;
};
using NormalizerStep = std::variant<NfcStep, PrependStep, ReplaceStep>;

class Normalizer {
 public:
  void add(NormalizerStep step) { steps_.push_back(std::move(step)); }
  bool changes(std::string_view text) const;  // false: apply(text) == text for certain
  std::string apply(std::string_view text) const;

 private:
  std::vector<NormalizerStep> steps_;
};

// Every `from` in `text` becomes `to`. Error(ErrorKind::limit) where that makes more than `most` bytes.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        size_t most = size_t{1} << 20);

}  // namespace ucas
