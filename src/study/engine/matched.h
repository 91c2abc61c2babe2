// Checkpoints at matched accuracy: methods that learn at different speeds are compared where they are equally accurate.
// Among the rows of one base and seed the lowest final validation is the mark; of each run the checkpoint is taken
// whose validation is nearest to it (of two equally near the later). Validation: mean@train.val_n, or greedy where that
// is 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "records/run_record.h"

namespace ucas {

// A run's validations at steps whose checkpoints are there, ascending.
struct ValidatedSteps {
  std::vector<int64_t> step;
  std::vector<double> accuracy;
};
ValidatedSteps validated_steps(const RunRecord& run, int64_t val_n);
// Of each run the step to evaluate. Error(ErrorKind::config) where a run has none.
std::vector<int64_t> matched_steps(const std::vector<ValidatedSteps>& runs);

}  // namespace ucas
