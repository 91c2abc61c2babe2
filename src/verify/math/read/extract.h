// Which part of a response is its answer. One linear pass; at most the last MiB of a response is looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "verify/grader.h"

namespace ucas::math {

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

// What stands inside the last <answer> that is closed, up to the first </answer> after it.
std::optional<std::string_view> last_answer_tag(std::string_view response);

// The boxes of a response: which of them is the answer, or are parts of it. Linear in the length of the text.

// May stand between two values of one answer: spaces, commas, "and", "or".
bool only_joins(std::string_view text);

// The last box; with `several`, the boxes side by side that end with it ("\boxed{1} and \boxed{2}"): these as one text.
Extracted from_box(std::string_view text, bool several);

// For a gold answer of `count` parts: the boxes that give them one by one, "the width is \boxed{3} and the height is
// \boxed{4}", as "\boxed{3}, \boxed{4}". nullopt unless they are all the boxes of the last sentence, joined by commas
// or "and", or all the boxes of the response, each in a part of its own; and nothing between them takes one back or
// draws a conclusion.
std::optional<std::string> joined_boxes(std::string_view response, size_t count);

}  // namespace ucas::math
