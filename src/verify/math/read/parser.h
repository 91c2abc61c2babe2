// Reads an answer, as a model or a data set writes it, into a tree (verify/math/read/expr.h). Never throws on any bytes
// and takes O(n) steps up to counted limits. A text that could be read in two ways is read in the usual one: 1,234 is
// one number, 2e-3 is 0.002, and 1000,5 is a list (a decimal comma is not distinguished from one).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/grader.h"
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

// Which part of a response is its answer. One linear pass; at most the last MiB of a response is looked at.

struct Extracted {
  bool found = false;
  std::string_view answer;  // into the response
  const char* how = "";     // "last box", or why nothing was found
};

// strict: the last \boxed{} or \fbox{}, and nothing if that one is not closed: an earlier box never counts.
// lenient: the same, but boxes side by side ("\boxed{1} and \boxed{2}") are one answer; without any box the text after
//          the last "final answer is", <answer>, ####, "answer is" or "answer:" (of a sentence of prose only its last
//          formula or number), else the last formula or number.
// answer_tag: strict, inside the last <answer>..</answer>; nothing outside it counts, an earlier one neither.
// bare: the whole text.
Extracted extract_answer(std::string_view response, Extract mode);

// What a response says outside of its thoughts, <think>..</think>, which a template may have opened: behind the last,
// else between them. Empty where it is all thoughts.
std::string_view without_thoughts(std::string_view response);

// The text inside the last <answer> that is closed, up to the first </answer> after it.
std::optional<std::string_view> last_answer_tag(std::string_view response);

// The boxes of a response: which of them is the answer, or are parts of it. Linear in the length of the text.

// Whether it may separate two values of one answer: spaces, commas, "and", "or".
bool only_joins(std::string_view text);

// The last box; with `several`, the boxes side by side that end with it ("\boxed{1} and \boxed{2}"): these as one text.
Extracted from_box(std::string_view text, bool several);

// For a gold answer of `count` parts: the boxes that give them one by one, "the width is \boxed{3} and the height is
// \boxed{4}", as "\boxed{3}, \boxed{4}". nullopt unless they are all the boxes of the last sentence, joined by commas
// or "and", or all the boxes of the response, each in a part of its own; and nothing between them takes one back or
// makes a conclusion.
std::optional<std::string> joined_boxes(std::string_view response, size_t count);

}  // namespace ucas::math
