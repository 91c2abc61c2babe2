// The letter of a multiple-choice answer, for rows that ask for letters only.
#pragma once

#include <optional>
#include <string_view>

#include "verify/grader.h"

namespace ucas {

// The first lone capital letter A to Z in the last \boxed{}, else after the last "answer", else in the whole text; "I"
// and an "A" before a word in lower case are no letters but words. Linear.
std::optional<char> choice_letter(std::string_view text);

// The letter of the response against those of the gold answers.
Verdict grade_letter(const Answer& answer);

}  // namespace ucas
