// The rows of `ucas verify`: answers with gold, what is known of them, and how each is to be read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/rows/jsonl.h"
#include "verify/grader.h"
#include "verify/registry.h"

namespace ucas {

// How one verdict came about, for people: what was taken from the response, how gold and answer were read, which rule
// decided. Slower than grading; never on the path of training.

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

struct VerifyRow {
  std::string id, prediction, group;
  std::string kind;  // bare, output, test, or "" where the row does not say
  std::vector<std::string> gold;
  int expected = -1;  // 1 right, 0 wrong, -1 not said
  MathOptions math;   // of kind test
};

// `kinds`: a row's "kind" and "config" are read, too, and refused where they are not known.
std::vector<VerifyRow> read_verify_rows(const std::string& path, BadRows bad_rows, bool kinds);
// Rows whose right answer is tests: in "gold", or as data sets publish them (data/code_problems.cpp).
std::vector<VerifyRow> read_code_rows(const std::string& path, BadRows bad_rows, const Grader& grader);

// How a row is graded: as `extract` says for all, else by its kind. The rows must outlive the answers.
std::vector<Answer> answers_of(std::span<const VerifyRow> rows, std::optional<Extract> extract);

struct Grading {
  std::vector<Verdict> verdicts;    // in the order of the answers, whatever the number of threads
  std::vector<double> cpu_seconds;  // of each verdict
  double seconds = 0;               // on the wall
};
// One answer at a time, blocks of answers to whichever thread is free. 0 threads: all cores.
Grading grade_rows(const Grader& grader, std::span<const Answer> answers, int64_t threads);

// id, verdict, answer, reason: a JSON line per row; with `explained` (all answers, or none) how it came about, too, and
// with `scores` the share that was right.
void write_verdicts(const std::string& path, std::span<const VerifyRow> rows, std::span<const Verdict> verdicts,
                    std::span<const Answer> explained, bool scores = false);

// What `ucas verify` prints of its verdicts.

inline bool is_rewarded(const Verdict& verdict) { return verdict.kind == VerdictKind::equal; }

// Verdicts against what rows say is right.
struct Tally {
  int64_t known = 0, agree = 0, false_positive = 0, false_negative = 0;
  void add(const VerifyRow& row, const Verdict& verdict);
  double agreement() const { return static_cast<double>(agree) / static_cast<double>(known); }
};

std::string group_name(const std::string& name);  // in a table
std::string alternatives_text(const std::vector<std::string>& alternatives);

// Shares of the verdicts; where rows say what is right, agreement overall and per group; speed.
std::string verify_summary(std::span<const VerifyRow> rows, const Grading& grading);

// The first `limit` rows whose verdict is not the expected one: both texts, what was extracted, the reason; with
// `explained` (all answers, or none) how gold and answer were read, too.
std::string disagreements(std::span<const VerifyRow> rows, std::span<const Verdict> verdicts, int64_t limit,
                          std::span<const Answer> explained);

}  // namespace ucas
