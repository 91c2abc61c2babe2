// Cuts text into the pieces inside which BPE merges. The published patterns are regular expressions; each one that is
// known here is recognised letter by letter and run by a matcher written by hand (linear, no backtracking). All others
// are run by text/split/regex.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ucas {

struct SplitPattern {
  const char* name;
  const char* expression;
  // End of the piece that begins at `at` (at < text.size()); always > at. `text` is what the pattern sees: its end
  // counts as the end of the input.
  size_t (*piece_end)(std::string_view text, size_t at);
};

const SplitPattern& gpt2_pattern();                              // ByteLevel(use_regex = true)
const SplitPattern* known_pattern(std::string_view expression);  // nullptr: not known

}  // namespace ucas
