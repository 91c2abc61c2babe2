// Responses in which no answer was found, for people: what three of them say, and which other value of the option
// `extract` would find an answer in how many. For `ucas evaluate` and the first step of a training.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "verify/grader.h"
#include "verify/registry.h"

namespace ucas {

inline constexpr double kManyUnreadable = 0.5;  // the share from which it is said

// "no answer was found in 97.5 % of 320 responses (extract strict: the last \boxed{}); 61 of 64 of them that were
// looked at have one for extract lenient; they end in "..so the answer is 2.", .." `responses`: some of them, without
// an answer; `option` names the option, such as "--extract".
std::string unreadable_in_words(double share, int64_t of, std::span<const std::string_view> responses,
                                GraderKind grader, Extract used, const std::string& option);

}  // namespace ucas
