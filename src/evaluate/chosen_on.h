// Whether a checkpoint was chosen on problems that it is evaluated on: train.best_metric keeps the step where the
// validation is highest, train.patience and a bound of train.stop_when on a validation end a run there. The highest of
// several figures is too high for its own problems. Fed by the checkpoint's run directory; for every command that
// evaluates.
#pragma once

#include <span>
#include <string>

#include "core/problem.h"

namespace ucas {

// A sentence for a warning; "" where nothing was chosen, no problem is the same, or the run does not tell.
std::string chosen_on(const std::string& checkpoint, std::span<const Problem> evaluated);

}  // namespace ucas
