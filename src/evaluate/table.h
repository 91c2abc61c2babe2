// Results side by side as text: metrics down, models across, each figure with its interval.
// LibTorch-free. Threads: any.
#pragma once

#include <span>
#include <string>

#include "evaluate/result.h"

namespace ucas {

// Overall figures; with several sources a table for each follows. All results are of the same problems.
std::string summary_table(std::span<const EvalResult> results);

}  // namespace ucas
