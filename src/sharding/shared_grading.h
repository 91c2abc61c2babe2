// Grading by several ranks: each grades some of the responses, by their numbers and never by who is quick, and all get
// all verdicts. Fed by rewards (train/collect); every rank calls with the same responses.
#pragma once

#include <span>
#include <vector>

#include "sharding/ranks.h"
#include "verify/registry.h"

namespace ucas {

// grade_all() (verify/registry.h) by all of them. Neighbours, which are of one problem and equally hard, go to
// different ranks. Where a grader throws an Error on one rank, all ranks throw it (Ranks::together).
std::vector<Verdict> grade_shared(const Graders& graders, std::span<const GradeItem> items, Ranks& ranks);

}  // namespace ucas
