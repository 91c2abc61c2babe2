// "Is B better than A?": one answer for every command that asks. A difference with its interval, its p, the p corrected
// by Holm over its table, and the words. A difference is significant where its interval excludes 0 and its corrected p
// is at most 1 - level.
// clang-format off
//   one run of each              problem by problem. Greedy answers: McNemar's exact test, and Bonett and Price's
//                                interval; else a paired bootstrap over problems and the sign-flip test. It speaks of
//                                these two models, not of their methods.
//   several runs of each         paired by base and seed: one interval and p over runs and problems (two_way). Runs
//                                that share one of several bases count as one.
//   several, no common labels    the same with Welch's t.
// clang-format on
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/compare/answers.h"
#include "results/table.h"

namespace ucas {

struct CompareOptions {
  double level = 0.95;
  int64_t draws = 10000;  // behind bootstrap intervals and sign-flip tests
  int64_t seed = 0;       // of the resamples
};

struct Contrast {
  Figure change;  // second less first; shares as shares
  double p = kUnknown, p_holm = kUnknown;
  int64_t gained = -1, lost = -1;  // greedy, one run each: right only in the second, right only in the first
  int64_t runs = 0, problems = 0;  // pairs of runs, or runs of the second group; common problems
  bool estimable = true;           // false: the runs differ all by the same, which says nothing of how they scatter
  bool significant = false;        // after correct()
  std::string basis;               // what interval and p are of: "McNemar's exact test", "t over 4 seeds, ..."
  bool known() const { return change.known(); }
  bool excludes_zero() const { return change.bounded() && (change.low > 0 || change.high < 0); }
};

Contrast contrast(const AnswerGroup& from, const AnswerGroup& to, const Quantity& quantity,
                  const CompareOptions& options);

// Holm's correction over a family of comparisons, i.e. those of one table; sets p_holm and significant. Returns how
// many there were.
int64_t correct(std::span<Contrast* const> family, double level);

// "higher", "lower", "not significant", "not significant after the correction", "not estimable".
std::string words_of(const Contrast& contrast, double level);
// "p = 0.012, corrected 0.024"
std::string p_texts(const Contrast& contrast);
std::string basis_text(const Contrast& contrast);  // "McNemar's exact test, 512 problems"
// About the correction, for below a table: "p corrected by Holm over 4 comparisons, level 5 %".
std::string family_text(int64_t comparisons, double level);

// The value of a group with its interval: of one run over its problems (greedy: Clopper-Pearson, else a bootstrap), of
// several their mean with a t interval over the runs.
struct Estimated {
  Figure value;
  double deviation = kUnknown;  // over runs
};
Estimated estimate(const AnswerGroup& group, const Quantity& quantity, const CompareOptions& options);

}  // namespace ucas
