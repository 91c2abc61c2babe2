// The pre_tokenizer of a tokenizer.json: steps that cut a text into the pieces inside which BPE merges, each step at
// work on every piece of the one before. Rules are Hugging Face's (NormalizedString::split and its
// SplitDelimiterBehavior). Fed by Tokenizer with normalised text, filled by text/tokenizer/tokenizer_file. Threads:
// const functions from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ucas {

// A regular expression as Hugging Face's tokenizers read it: Oniguruma, the library that they run, with its own syntax.
// Its \p{L}, \p{Lu} ... and \d are those of text/unicode (Unicode 16, as there), so that ids do not
// depend on which Oniguruma is installed; scripts, \w and [[:posix:]] are the library's. Threads: const functions may
// be called from any thread.

class Regex {
 public:
  // Error(ErrorKind::unsupported) that starts with `where` when the library does not take the expression.
  Regex(const std::string& expression, const std::string& where);

  struct Match {
    size_t begin, end;
  };
  // The leftmost match that starts at `from` or later; look-behind sees what is before `from`. `text` must be UTF-8.
  // Error(ErrorKind::limit) when the expression goes back and forth over the text for too long.
  std::optional<Match> find(std::string_view text, size_t from) const;
  // All matches, one after the other; an empty one right after another match is none (Hugging Face's find_iter).
  std::vector<Match> find_all(std::string_view text) const;
  const std::string& expression() const { return expression_; }

 private:
  std::string expression_;
  std::shared_ptr<void> compiled_;
};

// What becomes of a stretch that matches: a piece of its own, nothing, one piece with its neighbours that match, the
// end of the piece before, the beginning of the piece after.
enum class SplitBehavior { isolated, removed, contiguous, merged_with_previous, merged_with_next };

struct SplitStep {
  using CharTest = bool (*)(uint32_t code);
  // A literal text, an expression, or each character of a class.
  std::variant<std::string, Regex, CharTest> pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // the text between matches is the match
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
