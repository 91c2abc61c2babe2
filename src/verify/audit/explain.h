// How one verdict came about, for people: what was taken from the response, how gold and answer were read, which rule
// decided. Slower than grading; never on the path of training.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/grader.h"
#include "verify/registry.h"

namespace ucas {

struct Reading {
  std::string text;                   // as written
  std::string how;                    // where it was found, "" for a gold that is read whole
  std::string tree;                   // "(/ 1 2)", or why there is none
  std::vector<std::string> rewrites;  // in order
};

struct Explanation {
  std::vector<Reading> gold;  // of each alternative
  Reading answer;
  Verdict verdict;
};

// `extract` where the answer does not say its own.
Explanation explain(const Answer& answer, Extract extract);

// One thing per line.
std::vector<std::string> to_lines(const Explanation& explanation);

// Responses in which no answer was found, for people: what three of them say, and which other value of the option
// `extract` would find an answer in how many. For `ucas evaluate` and the first step of a training.

inline constexpr double kManyUnreadable = 0.5;  // the share from which it is said

// "no answer was found in 97.5 % of 320 responses (extract strict: the last \boxed{}); 61 of 64 of them that were
// looked at have one for extract lenient; they end in "..so the answer is 2.", .." `responses`: some of them, without
// an answer; `option` names the option, such as "--extract".
std::string unreadable_in_words(double share, int64_t of, std::span<const std::string_view> responses,
                                GraderKind grader, Extract used, const std::string& option);

}  // namespace ucas
