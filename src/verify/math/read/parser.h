// Reads an answer, as a model or a data set writes it, into a tree (verify/math/read/expr.h). Never throws on any bytes
// and takes O(n) steps up to counted limits. A text that could be read in two ways is read in the usual one: 1,234 is
// one number, 2e-3 is 0.002, and 1000,5 is a list (a decimal comma is not told from one).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/math/read/expr.h"

namespace ucas::math {

struct ParseOptions {
  bool explain = false;   // record the rewrites
  bool choices = true;    // a lone (B) or B is a choice letter, not a variable
  bool free_text = true;  // what the grammar cannot read becomes a text node; otherwise it is unparseable
};

enum class ParseStatus : uint8_t { ok, empty, unparseable, over_budget };

struct ParseResult {
  ParseStatus status = ParseStatus::empty;
  Tree tree;                          // tree.root() is an error node unless status is ok
  std::string reason;                 // one phrase where status is not ok
  std::vector<std::string> rewrites;  // "\\dfrac12 read as 1/2", in order
};

ParseResult parse_math(std::string_view text, const ParseOptions& options = {});

// Answers without what LaTeX, Markdown and habit put around them, so that equal answers look alike more often.
// Linear in the length of the answer.

// Commands whose first letter some program took for an escape get it back: a form feed and "rac" is \\frac, a tab and
// "imes" \\times. The text itself where there are none, otherwise a view of `buffer`.
std::string_view restore_commands(std::string_view text, std::string& buffer);

// trim(), but for a blank in front that is such a letter: a tab before "an x" stays, so that an answer reads as the
// same text would as a gold answer.
std::string_view trim_answer(std::string_view text);

// Delimiters, sizes and spacing commands gone, one spelling per command and symbol, \text for every text command,
// single spaces: the form that numbers and units are read from.
std::string normalize(std::string_view answer);

// A decimal at the start of normalised text in one spelling: 12, -3.50, .5, 1,234,567, whose commas split the whole
// part into groups of three; `rest` is what follows it, all of the text where there is none.
std::string take_number(std::string_view text, std::string_view& rest);

// The key that two texts are compared by: normalised text without spaces, \text and needless braces; words in lower
// case.
std::string text_key(std::string_view normalized);

// Braces match and no control character or invalid UTF-8 is inside.
bool well_formed(std::string_view answer);

}  // namespace ucas::math
