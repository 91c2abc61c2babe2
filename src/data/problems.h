// Problem files -> Problem. JSON Lines, or rows of the verl schema: prompt = [{role, content}],
// reward_model.ground_truth, data_source, extra_info.index. Feeds train and evaluate.
// clang-format off
//   problem | question | prompt | messages   the question, or a list of messages {role, content}: at most one of the
//                                            system, turns of user and assistant, the question last
//   answer | ground_truth | solution         text, number, or a list of alternatives; of a text whose last line is
//                                            "#### X" (GSM8K) X alone; the grader reads a box in it
//   test, input_output ...                   instead of an answer: tests of a program (data/code_problems.cpp)
//   id | unique_id                           optional
//   choices                                  optional: a list of texts; the answer is then a letter, a number from 0,
//                                            or one of the texts
//   subject                                  optional
// clang-format on
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
    f.field("choices", choices, "column of the list of choices, or A|B|C: a column for each, in an order of their own",
            Effect::place);
    f.field("subject", subject, "column of the subject", Effect::place);
  }
};

struct ProblemOptions {
  BadRows bad_rows = BadRows::stop;
  bool labels = true;  // every problem must have a right answer; false: those without one have an empty gold
  ProblemColumns columns;
  bool columns_where_there = false;  // a row without such a column is read by the usual names
  int64_t most = 0;                  // the first problems alone; 0: all

  void fields(Fields& f) { f.choice("bad_rows", bad_rows, kBadRowsHelp); }
};

// The problems of all files, in order. Errors: path, limit, empty, data_line. A file most of whose right answers are
// prose gets a warning. `rows` gets the row of each, as JSON, for rewards that ask for more than a Problem holds.
std::vector<Problem> read_problems(const std::vector<std::string>& files, const ProblemOptions& options = {},
                                   std::vector<std::string>* rows = nullptr);

// X of a right answer whose last line is "#### X", without the commas between its thousands; any other as it is.
std::string marked_answer(const std::string& gold);

// Words of two letters or more that are no LaTeX command: a number or a formula has few of them.
bool is_prose(const std::string& gold);

// A stable 64-bit hash of everything that a run takes from the problems: resume refuses a changed data set.
uint64_t content_hash(const std::vector<Problem>& problems);

// Tests of programming problems, as data sets publish them -> the gold answer that the code grader reads
// (verify/code/tests.h). Feeds `ucas verify --kind code`.
// clang-format off
//   test | test_list                        text of asserts, or a list of them (LeetCode, HumanEval, MBPP);
//                                           entry_point, test_setup_code
//   input_output                            [{input, output}] with entry_point (LeetCodeDataset), or
//                                           {inputs, outputs, fn_name}
//   public_test_cases, private_test_cases   LiveCodeBench: JSON text of [{input, output, testtype}], the private ones
//                                           perhaps packed; metadata.func_name
//   ground_truth of verl                    JSON text of {inputs, outputs, fn_name}
//   asserts | calls | values | stdin        our own
// clang-format on

// "" where the row has no tests. Error(ErrorKind::data_line) for what looks like tests and is none.
std::string gold_of_tests(const JsonRow& row);

// Of verl's ground_truth that is such a JSON text; "" for any other text.
std::string gold_of_truth(const JsonRow& row, const std::string& truth);

// Whether a right answer is tests, as the above write them, or text of asserts.
bool holds_tests(const std::string& gold);

// LiveCodeBench's private tests: base64 of zlib of a pickle that holds one text and nothing else. This reads that one
// form and refuses every other: a pickle is a program, and none is run here. Error(ErrorKind::data_line, "WHERE: ...").
std::string unpack_text(std::string_view packed, const std::string& where);

// What a data file holds, before a training reads it: its columns, and what it comes to as problems: `ucas check
// --summary`. Threads: one per call.

// Of lengths in characters, tokens or items: the quartiles of those that were added.
class Lengths {
 public:
  void add(int64_t length) { all_.push_back(length), sorted_ = false; }
  bool empty() const { return all_.empty(); }
  int64_t at(double share) const;  // 0 the shortest, 0.5 the median, 1 the longest
 private:
  mutable std::vector<int64_t> all_;
  mutable bool sorted_ = false;
};

struct ColumnSummary {
  std::string name;
  std::map<std::string, int64_t> types;  // "string", "number", "array", "object", "boolean" -> rows
  int64_t rows = 0, empty = 0;           // rows that have it (null counts as absent); blank texts and empty lists
  Lengths lengths;                       // characters of texts, items of lists
  std::string example;
};

struct FileSummary {
  std::string path;
  int64_t rows = 0;
  std::vector<ColumnSummary> columns;
};
FileSummary summarize_file(const std::string& path);

// What a right answer is: "whole number", "decimal", "fraction", "LaTeX", "words", "prose", "choice", "program tests",
// "several values", "none".
std::string gold_kind(const Problem& problem);

struct ProblemsSummary {
  int64_t problems = 0;
  std::map<std::string, int64_t> kinds, sources, alternatives;  // alternatives: "1", "2" .. right answers
  int64_t conversations = 0, with_system = 0;
  Lengths questions;               // characters
  int64_t repeated_questions = 0;  // rows whose question was in an earlier row
  int64_t contradictions = 0;      // of them, with another right answer
  int64_t repeated_ids = 0;
  std::vector<std::string> examples;  // "ID and ID: QUESTION" of the first repeated questions
};
ProblemsSummary summarize_problems(const std::vector<Problem>& problems);

}  // namespace ucas
