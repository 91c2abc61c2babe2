// Results side by side as text: metrics down, models across, each figure with its interval.
#pragma once

#include <span>
#include <string>

#include "records/evaluation.h"

namespace ucas {

// Overall figures; with several sources a table for each follows. All results are of the same problems.
std::string summary_table(std::span<const EvalRecord> results);

// Results of one suite: benchmarks down, models across for each score; means of the benchmarks (macro) and over all
// problems (micro) below; then, for each model, how long its responses are and how many could not be read.
std::string suite_table(std::span<const EvalRecord> results);

}  // namespace ucas
