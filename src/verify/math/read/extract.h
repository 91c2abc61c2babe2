// Which part of a response is its answer. One linear pass; at most the last MiB of a response is looked at.
#pragma once

#include <optional>
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

// What stands inside the last <answer> that is closed, up to the first </answer> after it.
std::optional<std::string_view> last_answer_tag(std::string_view response);

}  // namespace ucas::math
