// How one verdict came about, for people: what was taken from the response, how gold and answer were read, which rule
// decided. Slower than grading; never on the path of training.
#pragma once

#include <string>
#include <vector>

#include "verify/grader.h"

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

}  // namespace ucas
