// A comparison (compare/models.h) as text and JSON.
#pragma once

#include <span>
#include <string>

#include "compare/models.h"
#include "evaluate/results/published.h"
#include "records/evaluation.h"

namespace ucas {

// Settings that differ and warnings first, then a table a metric, then the differences from the first model.
std::string comparison_text(const Comparison& comparison, std::span<const PublishedTable> published = {});
std::string comparison_json(const Comparison& comparison);

// What `ucas evaluate` prints below its own table: models against the first one. "" for fewer than two.
std::string comparison_text(std::span<const EvalRecord> results);

}  // namespace ucas
