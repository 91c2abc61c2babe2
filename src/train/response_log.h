// What a run keeps of its steps (docs/formats.md): some sampled responses for the report,
// RUN/rollouts/step-0000012.jsonl, and of fewer steps everything that methods read, RUN/signals/step-0000012.jsonl.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "train/collect.h"
#include "train/objective.h"

namespace ucas {

// Rows of the first `prompts` groups, the first `responses` of each, as JSON lines.
std::string response_rows(const Collected& collected, const TrainingSet& data, std::span<const float> advantage,
                          int64_t step, int64_t prompts, int64_t responses);

// The leading groups of a step with all their signals, the advantages, the method's recording and what the updates made
// of the tokens, as core/step_data writes them. `config` says which method made them and how much is kept.
std::string signal_rows(const TrainConfig& config, const Collected& collected, const TrainingSet& data,
                        const Tokenizer& tokenizer, std::span<const float> advantage, const Recording& recording,
                        const TokenUpdates& updates, int64_t step);

}  // namespace ucas
