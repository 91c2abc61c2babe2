// Which problems come next: all of them in a new order each epoch, sources in turns by their weights, those that are
// neither solved nor hopeless more often; solved ones rest. The seed and the cursor decide alone, so a run that goes on
// draws what it would have drawn.
// Fed by train/collect, which says how responses went. Threads: one per cursor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/collect.h"

namespace ucas {

// The problems of the next generation batch, across epochs. The last batch of a run may be smaller. Where all problems
// rest, they are taken all the same; `rested` counts those that were passed over.
std::vector<int64_t> next_problems(const TrainConfig& config, int64_t step, const TrainingSet& data, DataCursor& cursor,
                                   int64_t& rested);

// How the responses to a problem went at a step.
void note_outcome(const TrainConfig& config, int64_t problem, int64_t step, std::span<const Response> responses,
                  DataCursor& cursor);

// p (1 - p), p = (right + 1) / (responses + 2) of the last time: 1/4 for a problem that was never tried, never 0.
double difficulty_weight(const SuccessCount& last);

// Error("config") where data.weights and the sources of the problems are not the same.
void check_sources(const TrainConfig& config, const TrainingSet& data);

}  // namespace ucas
