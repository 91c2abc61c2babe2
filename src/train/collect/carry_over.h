// Carry-over (rollout.carry_over): graded prompts that a step leaves for the next one, as a file of its checkpoint,
// state/surplus.jsonl in the form of records/run/step_data.h. A resumed run trains on the same tokens under the same
// log-probs.
#pragma once

#include <cstdint>
#include <string>

#include "core/batch.h"
#include "train/collect/collect.h"

namespace ucas {

inline constexpr const char* kCarryOverFile = "surplus.jsonl";

// "" where there is none.
std::string carry_over_lines(const Batch& carried_over, const TrainingSet& data, int64_t step);

// Of the checkpoint of `step`, which says that it left `groups`. Error(ErrorKind::schema) naming the file where it is
// not what a step of this run can have left: other problems, tokens that the model does not know, figures that are
// missing.
Batch read_carry_over(const std::string& path, const TrainingSet& data, int64_t step, int64_t groups,
                      int64_t vocabulary);

}  // namespace ucas
