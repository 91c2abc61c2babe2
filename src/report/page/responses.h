// Responses to read: for a few problems the answers of every group side by side, and how many problems each method won
// and lost; from training, the responses of the first and the last stored step with their rewards and advantages.
// All text is escaped (report/escape.h) and cut, so that a report stays small.
#pragma once

#include <string>
#include <vector>

#include "compare/groups.h"

namespace ucas {

struct SampleLimits {
  size_t problems = 8;                   // side by side
  size_t responses = 3;                  // of the samples, folded below the greedy one
  size_t bytes = 4000;                   // of one text
  size_t token_bytes = size_t{5} << 20;  // of the token explorer's JSON
};

// "" if no run has responses.
std::string responses_html(const std::vector<RunGroup>& groups, const SampleLimits& limits);

}  // namespace ucas
