// Several models on the same problems: what each reached, and which differences the problems can bear out. Every
// difference is taken problem by problem against the first group, with an interval and a p; the p of one table (one
// metric) are corrected together by Holm, and a difference is claimed only where its interval excludes 0 and the
// corrected p is below 1 - level.
// Fed by `ucas evaluate` (results in memory) and `ucas compare` (run directories); written out by compare_table.h.
// LibTorch-free. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evaluate/card.h"
#include "evaluate/result.h"
#include "stats/spread.h"

namespace ucas {

struct ComparedProblem {
  std::string source, id;
  std::string content;  // hash of question and gold: the same id must mean the same problem
  int greedy = -1;      // 1 right, 0 wrong, -1 not asked
  int64_t samples = 0, correct = 0;
};

struct ComparedRun {
  std::string name;   // for messages
  int64_t seed = -1;  // runs of two groups are paired by it; -1: none
  std::vector<ComparedProblem> problems;
  std::vector<std::pair<std::string, std::string>> settings;  // how it was evaluated, for people
};

// Runs that differ only in their seed.
struct ComparedGroup {
  std::string title;
  std::vector<ComparedRun> runs;
};

ComparedRun compared_run(const EvalResult& result);
// DIRECTORY/NAME.jsonl, with the settings of NAME.card.json where there is one, else of NAME.json.
// Errors: path, data_line, header_json.
ComparedRun read_compared_run(const std::string& directory, const std::string& name);
std::vector<std::pair<std::string, std::string>> settings_of(const Card& card);

struct CompareOptions {
  std::vector<int64_t> ks;  // of pass@k; empty = 4, 16, 64, as far as there are samples, else the largest power of two
  double level = 0.95;
  int64_t draws = 10000;
  int64_t seed = 0;
};

struct ComparedCell {
  Figure value;                 // of one run with its interval over problems; of several their mean with a t interval
  double deviation = kUnknown;  // over runs
};

struct Contrast {
  Figure change;  // group less the first group, in shares
  double p = kUnknown, p_holm = kUnknown;
  int64_t gained = -1, lost = -1;  // greedy, one run each: right only now, right only before
  bool told_apart = false;
  std::string basis;  // of interval and p: "McNemar's exact test" ...
};

struct ComparedMetric {
  std::string key, title;                       // "greedy", "mean@16", "pass@4"
  std::vector<std::vector<ComparedCell>> cell;  // [group][set]
  std::vector<std::vector<Contrast>> contrast;  // [group][set]; of the first group empty
  int64_t comparisons = 0;                      // in the family that Holm's correction is over
};

struct ComparedSet {
  std::string name, title;  // a source, or "macro", "micro"
  int64_t problems = 0;
};

struct Comparison {
  std::vector<std::string> groups;
  std::vector<ComparedSet> sets;  // sources in order of the first run; with several of them also macro and micro
  std::vector<ComparedMetric> metrics;
  std::vector<std::string> differing;  // settings that differ between the runs
  std::vector<std::string> warnings;   // what is not like for like
  CompareOptions options;
};

// Over the problems that all runs answered; says how many are left out. Error("empty") if there are none.
Comparison compare_models(std::span<const ComparedGroup> groups, const CompareOptions& options);

}  // namespace ucas
