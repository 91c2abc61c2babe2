// Which run of one group is held against which of another, and their differences problem by problem, paired by source
// and id. Feeds contrast.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "compare/answers.h"

namespace ucas {

using ProblemKey = std::tuple<std::string, std::string, int64_t>;  // source, id, which of those with this id
std::map<ProblemKey, const ProblemAnswers*> by_key(const RunAnswers& run);

enum class Pairs {
  one,       // one run of each
  labelled,  // several, by base and seed
  fixed,     // every run against one untrained run of its base
  unpaired,  // without a common label: two independent samples
};

struct RunPairs {
  Pairs kind = Pairs::one;
  std::vector<std::pair<const RunAnswers*, const RunAnswers*>> pairs;  // empty for unpaired
  size_t left_out = 0;                                                 // runs of both groups without a partner
};
RunPairs pair_runs(const AnswerGroup& from, const AnswerGroup& to);

// One quantity of several runs over the problems that all of them have it for.
struct AlignedValues {
  std::vector<size_t> strata;              // problems of each set side by side: of each source for macro, else one set
  std::vector<std::vector<double>> value;  // [run][problem]
  int64_t problems = 0;
};
AlignedValues align(std::span<const RunAnswers* const> runs, const Quantity& quantity);

// Mean over the strata of their means, each counting the same.
double mean_of_strata(const std::vector<double>& value, const std::vector<size_t>& strata);

}  // namespace ucas
