// Results side by side as text: metrics down, models across, each figure with its interval.
#pragma once

#include <span>
#include <string>

#include "evaluate/results/published.h"
#include "records/evaluation.h"
#include "results/compare/models.h"

namespace ucas {

// Overall figures; with several sources a table for each follows. All results are of the same problems.
std::string summary_table(std::span<const EvalRecord> results);

// Results of one suite: benchmarks down, models across for each score; means of the benchmarks (macro) and over all
// problems (micro) below; then, for each model, how long its responses are and how many could not be read.
std::string suite_table(std::span<const EvalRecord> results);

// A comparison (results/compare/models.h) as text.

// Settings that differ and warnings first, then a table a metric, then the differences from the first model.
std::string comparison_text(const Comparison& comparison, std::span<const PublishedTable> published = {});

// What `ucas evaluate` prints below its own table: models against the first one. "" for fewer than two.
std::string comparison_text(std::span<const EvalRecord> results);

}  // namespace ucas
