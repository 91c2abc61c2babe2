// Several models on the same problems, benchmark by benchmark: what each reached, and which differences from the first
// one are significant (contrast.h). Fed by `ucas evaluate` (results in memory) and `ucas compare` (run directories);
// written out by evaluate/results/table.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/compare/contrast.h"

namespace ucas {

struct ModelsOptions : CompareOptions {
  std::vector<int64_t> ks;  // of pass@k; empty = 4, 16, 64, as far as there are samples, else the largest power of two
};

struct ComparedMetric {
  Quantity quantity;
  std::string key, title;                       // "greedy", "greedy pass@1"; "mean@16"
  std::vector<std::vector<Estimated>> cell;     // [group][set]
  std::vector<std::vector<Contrast>> contrast;  // [group][set]; of the first group empty
  int64_t comparisons = 0;                      // in the family that Holm's correction is over ...
  std::string family;                           // ... "greedy pass@1 and mean@16"
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
  ModelsOptions options;
};

// Over the problems that all runs answered; says how many are left out. The p of greedy answers and of the quoted mean
// are one family, those of every further metric one each. Error(ErrorKind::empty) if no problem is common.
Comparison compare_models(std::span<const AnswerGroup> groups, const ModelsOptions& options);

}  // namespace ucas
