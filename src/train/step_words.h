// What a training says of a step beside its numbers: answers that nobody can read, and how much of the machine it used.
#pragma once

#include <string>

#include "train/metrics.h"
#include "train/start.h"

namespace ucas {

// Said once, of the first step: a run whose answers nobody can read learns nothing, or a form that nobody wanted.
void warn_of_unreadable(const Training& training, const CollectStats& stats);
// Where a step seems quicker than the machine, this was measured while others worked here: it is measured again.
void hold_shares_to_limits(Training& training, StepMetrics& metrics);
// "sampling 39 %, update 48 %"; "" where nothing is known.
std::string share_words(const StepMetrics& metrics);

}  // namespace ucas
