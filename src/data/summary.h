// What a data file holds, before a training reads it: its columns, and what it comes to as problems. For `ucas data`.
// Threads: one per call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/problems.h"

namespace ucas {

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
  int64_t repeated_questions = 0;  // rows whose question stood in an earlier row
  int64_t contradictions = 0;      // of them, with another right answer
  int64_t repeated_ids = 0;
  std::vector<std::string> examples;  // "ID and ID: QUESTION" of the first repeated questions
};
ProblemsSummary summarize_problems(const std::vector<Problem>& problems);

}  // namespace ucas
