// Messages of a training step: unparseable answers, and the share of the machine's peak that it used.
#pragma once

#include <string>

#include "train/loop/start.h"
#include "train/metrics/metrics.h"

namespace ucas {

// Once, for the first step: a run whose answers are unparseable learns nothing, or an unwanted format.
void warn_of_unreadable(const Training& training, const CollectStats& stats);
// "sampling 39 %, update 48 %"; "" where nothing is known.
std::string share_words(const StepMetrics& metrics);

}  // namespace ucas
