// Problem files -> Problem. JSON Lines, or rows of the verl schema: prompt = [{role, content}],
// reward_model.ground_truth, data_source, extra_info.index. Feeds train and evaluate.
// clang-format off
//   problem | question | prompt | messages   the question, or a list of messages {role, content}: at most one of the
//                                            system, turns of user and assistant, the question last
//   answer | ground_truth | solution         text, number, or a list of alternatives; of a text whose last line is
//                                            "#### X" (GSM8K) X alone; the grader reads a box in it
//   test, input_output ...                   instead of an answer: tests of a program (data/code_problems.h)
//   id | unique_id                           optional
//   choices                                  optional: a list of texts; the answer is then a letter, a number from 0,
//                                            or one of the texts
//   subject                                  optional
// clang-format on
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/verdict.h"
#include "data/rows/jsonl.h"

namespace ucas {

// Names of columns where a file has others than those above; "" = those.
struct ProblemColumns {
  std::string id, problem, answer, choices, subject;
  void fields(Fields& f) {
    f.field("id", id, "column of the problem id", Effect::place);
    f.field("problem", problem, "column of the question", Effect::place);
    f.field("answer", answer, "column of the right answer", Effect::place);
    f.field("choices", choices, "column of the list of choices", Effect::place);
    f.field("subject", subject, "column of the subject", Effect::place);
  }
};

struct ProblemOptions {
  BadRows bad_rows = BadRows::stop;
  bool labels = true;  // every problem must have a right answer; false: those without one have an empty gold
  ProblemColumns columns;
  bool columns_where_there = false;  // a row without such a column is read by the usual names

  void fields(Fields& f) { f.choice("bad_rows", bad_rows, kBadRowsHelp); }
};

// The problems of all files, in order. Errors: path, limit, empty, data_line. A file most of whose right answers are
// prose gets a warning.
std::vector<Problem> read_problems(const std::vector<std::string>& files, const ProblemOptions& options = {});

// X of a right answer whose last line is "#### X", without the commas between its thousands; any other as it is.
std::string marked_answer(const std::string& gold);

// Words of two letters or more that are no LaTeX command: a number or a formula has few of them.
bool is_prose(const std::string& gold);

// A stable 64-bit hash of everything that a run takes from the problems: resume refuses a changed data set.
uint64_t content_hash(const std::vector<Problem>& problems);

// The rows of problem files as their columns have them, for rewards that ask for more than a Problem holds.

// JSON texts by the problems' ids, of the rows that read_problems reads; of two with one id the first.
std::map<std::string, std::string> read_source_rows(const std::vector<std::string>& files,
                                                    const ProblemOptions& options);

}  // namespace ucas
