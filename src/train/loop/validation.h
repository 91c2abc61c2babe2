// Validation during training: a greedy response to each problem of data.val_files, and train.val_n samples, as
// `ucas evaluate` would have them, judged by the training's reward; and which validated step is the best.
#pragma once

#include "train/loop/start.h"
#include "train/loop/step_record.h"
#include "train/metrics/metrics.h"

namespace ucas {

// Whether the step that has just been made is followed by one.
bool validates(const Training& training, bool finished);
// Its figures by source: val-core/SOURCE/acc/mean@1, reward/mean@1 and val-aux/SOURCE/... of the record. Of several
// ranks all sample, and rank 0 alone grades and counts: programs near a limit of time might get two verdicts.
void validate(const Training& training, StepRecord& record);

// What train.best_metric says of a validated step: the mean of the numbers that its name matches.
// Error(ErrorKind::config) that lists the names where there is none.
double value_of_best(const std::string& best_metric, const StepMetrics& metrics);
// Whether the step that was just validated is the best so far.
void judge(Training& t, const StepMetrics& validated);
void say_best(const Training& t);  // at the end

}  // namespace ucas
