// What a step left for the next one (rollout.surplus = "carry"), as a file of its checkpoint: state/surplus.jsonl, in
// the form of records/step_data.h, so that a run that goes on trains on the same tokens under the same log-probs.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>

#include "core/batch.h"
#include "train/collect.h"

namespace ucas {

inline constexpr const char* kSurplusFile = "surplus.jsonl";

// "" where there is none.
std::string surplus_lines(const Batch& surplus, const TrainingSet& data, int64_t step);

// Of the checkpoint of `step`, which says that it left `groups`. Error("schema") naming the file where it is not what a
// step of this run can have left: other problems, tokens that the model does not know, figures that are missing.
Batch read_surplus(const std::string& path, const TrainingSet& data, int64_t step, int64_t groups, int64_t vocabulary);

}  // namespace ucas
