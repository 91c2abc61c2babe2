// Which problems of an evaluation stand, wholly or in part, among those of a training: runs of words that both have.
// A word is a run of letters and digits, lower case for ASCII, a number with its decimal point, or one letter of a
// script that writes no spaces. The signs of an expression (+ - * / = < > ^ % | and parentheses around them) belong to
// the word after them, a percent sign and a closing parenthesis to the one before: `12 + 5 - 3` is `12 +5 -3`. Spaces,
// other punctuation and LaTeX's layout do not count, and \times is *. Fed by problem files, read by `ucas
// contamination`. Threads: one call a thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.h"

namespace ucas {

struct Overlap {
  size_t evaluated = 0;  // index of the problem of the evaluation
  size_t trained = 0;    // of the training problem that shares the longest run with it
  int64_t others = 0;    // further training problems that share a run
  bool whole = false;    // all its words are the training problem's, in order
  int64_t shared = 0;    // words of the longest run
  int64_t words = 0;     // of the evaluated problem
  std::string text;      // the run, as words
};

// Problems of `evaluated` that share a run of `run` words or more with one of `trained`; shorter ones, only those whose
// words are all of a training problem's. In the order of `evaluated`.
std::vector<Overlap> find_overlaps(const std::vector<Problem>& trained, const std::vector<Problem>& evaluated,
                                   int64_t run);
// For messages and tests.
std::vector<std::string> words_of_problem(const std::string& text);

}  // namespace ucas
