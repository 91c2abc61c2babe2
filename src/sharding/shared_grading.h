// Grading by several ranks: each grades some of the responses, by their numbers and never by who is quick, and all get
// all verdicts. Fed by rewards (train/collect) and evaluations; every rank calls with the same responses.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sharding/ranks.h"
#include "verify/registry.h"

namespace ucas {

// Of each of `count` responses the rank that grades it: neighbours, which are of one problem and equally hard, go to
// different ones.
std::vector<int64_t> graded_by(const Ranks& ranks, size_t count);

// `by`: of each response the rank that grades it, the same on all ranks. `grade` gets the numbers of this rank's,
// ascending, and gives a verdict for each. Where it throws an Error on one rank, all ranks throw it (Ranks::together).
using GradeSome = std::function<std::vector<Verdict>(std::span<const size_t> numbers)>;
std::vector<Verdict> gather_verdicts(Ranks& ranks, std::span<const int64_t> by, const GradeSome& grade);

// grade_all() (verify/registry.h) by all of them.
std::vector<Verdict> grade_shared(const Graders& graders, std::span<const GradeItem> items, Ranks& ranks);

}  // namespace ucas
