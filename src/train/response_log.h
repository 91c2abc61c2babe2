// Sampled responses kept for the report: RUN/rollouts/step-0000012.jsonl, one row a response (docs/formats.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "train/collect.h"

namespace ucas {

// Rows of the first `prompts` groups, the first `responses` of each, as JSON lines.
std::string response_rows(const Collected& collected, const TrainingSet& data, std::span<const float> advantage,
                          int64_t step, int64_t prompts, int64_t responses);

}  // namespace ucas
