// The rows of `ucas verify`: answers with gold, what is known of them, and how each is to be read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/rows/jsonl.h"
#include "verify/grader.h"

namespace ucas {

struct VerifyRow {
  std::string id, prediction, group;
  std::string kind;  // bare, output, test, or "" where the row does not say
  std::vector<std::string> gold;
  int expected = -1;  // 1 right, 0 wrong, -1 not said
  MathOptions math;   // of kind test
};

// `kinds`: a row's "kind" and "config" are read, too, and refused where they are not known.
std::vector<VerifyRow> read_verify_rows(const std::string& path, BadRows bad_rows, bool kinds);
// Rows whose right answer is tests: in "gold", or as data sets publish them (data/code_problems.h).
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

}  // namespace ucas
