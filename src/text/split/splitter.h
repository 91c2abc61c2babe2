// The pre_tokenizer of a tokenizer.json: steps that cut a text into the pieces inside which BPE merges, each step at
// work on every piece of the one before. Rules are Hugging Face's (NormalizedString::split and its
// SplitDelimiterBehavior). Fed by Tokenizer with normalised text, filled by text/tokenizer/tokenizer_file. Threads:
// const functions from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/split/regex.h"

namespace ucas {

// What becomes of a stretch that matches: a piece of its own, nothing, one piece with its neighbours that match, the
// end of the piece before, the beginning of the piece after.
enum class SplitBehavior { isolated, removed, contiguous, merged_with_previous, merged_with_next };

struct SplitStep {
  using CharTest = bool (*)(uint32_t code);
  // A literal text, an expression, or each character of a class.
  std::variant<std::string, Regex, CharTest> pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // what lies between matches is the match
};
struct PrefixSpaceStep {};  // ByteLevel(add_prefix_space): a space before each piece that has none

enum class PrependScheme { always, first, never };  // first: only where the sequence begins
struct MetaspaceStep {
  std::string replacement;  // one character, for each space and before a piece that does not begin with it
  PrependScheme scheme = PrependScheme::always;
  bool split = true;  // cut before each replacement
};

using SplitterStep = std::variant<SplitStep, PrefixSpaceStep, MetaspaceStep>;

bool is_numeric(uint32_t code);      // Digits
bool is_punctuation(uint32_t code);  // Punctuation

class Splitter {
 public:
  void add(SplitterStep step) { steps_.push_back(std::move(step)); }

  // The pieces of a text, in order; they live as long as this and the text.
  struct Pieces {
    std::vector<std::string_view> text;
    std::deque<std::string> made;  // what steps wrote
  };
  // `first`: does the text begin the sequence?
  Pieces cut(std::string_view text, bool first) const;

 private:
  std::vector<SplitterStep> steps_;
};

}  // namespace ucas
