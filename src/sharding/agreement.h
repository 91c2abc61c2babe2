// What ranks agree on: before anything is trained that they are at the same run, and once a step what rank 0 decides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sharding/ranks.h"
#include "train/state/train_state.h"
#include "verify/registry.h"

namespace ucas {

std::string name_ranks(const std::vector<int64_t>& numbers);  // "rank 1", "ranks 1, 2 and 5"

// "optimizer.lr = 0.1 at rank 0, 0.2 at ranks 1 and 3" for each name whose value is not the same on all; all[r] are the
// lines "name = value" of rank r.
std::vector<std::string> differences_of(const std::vector<std::vector<std::string>>& all);

// AgreedError(ErrorKind::config) on all ranks where lines "name = value" are not the same.
void require_same(Ranks& ranks, const char* what, const std::vector<std::string>& lines);

// What happens next, which no rank may see differently: clocks, files and programs are not the same on all.
struct Decision {
  bool validate = false, save = false, last = false;
  bool stop = false;  // requested on any rank
  BestStep best;
};
// Rank 0's, on all.
Decision decided(Ranks& ranks, const char* what, const Decision& mine);

// Grading by several ranks: each grades some of the responses, by their numbers and never by who is quick, and all get
// all verdicts. Fed by rewards (train/collect); every rank calls with the same responses.

// grade_all() (verify/registry.h) by all of them. Consecutive items are of one problem and equally hard, and go to
// different ranks. Where a grader throws an Error on one rank, all ranks throw it (Ranks::together).
std::vector<Verdict> grade_shared(const Graders& graders, std::span<const GradeItem> items, Ranks& ranks);

}  // namespace ucas
