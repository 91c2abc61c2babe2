// Validation during training: one greedy response to each problem of data.val_files, as `ucas evaluate` would have it.
#pragma once

#include "train/metrics.h"
#include "train/start.h"
#include "train/step_record.h"

namespace ucas {

// Whether the step that has just been made is followed by one.
bool validates(const Training& training, bool finished);
// Its figures by source: val-core/SOURCE/acc/mean@1 and val-aux/SOURCE/... of the record.
void validate(const Training& training, StepRecord& record);

// What train.best_metric says of a validated step: the mean of the numbers that its name matches. Error("config") that
// lists the names where there is none.
double value_of_best(const std::string& best_metric, const StepMetrics& metrics);

}  // namespace ucas
