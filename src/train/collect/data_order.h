// Data order: selects the next problems. Each epoch has all of them in a new order, sources in turns by their weights,
// problems that are neither solved nor hopeless more often; solved ones are in cooldown. Seed and cursor alone decide,
// so a resumed run selects what an uninterrupted one would. Fed by train/collect, which says how responses went.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "train/collect/collect.h"

namespace ucas {

// The problems of the next generation batch, across epochs. The last batch of a run may be smaller. Where all problems
// rest, they are taken all the same; `skipped_in_cooldown` counts those that were passed over. `most`: fewer than a
// batch, which are its first ones.
std::vector<int64_t> next_problems(const TrainConfig& config, int64_t step, const TrainingSet& data, DataCursor& cursor,
                                   int64_t& skipped_in_cooldown, int64_t most = std::numeric_limits<int64_t>::max());

// How the responses to a problem went at a step.
void note_outcome(const TrainConfig& config, int64_t problem, int64_t step, std::span<const Response> responses,
                  DataCursor& cursor);

// p (1 - p), p = (right + 1) / (responses + 2) of the last time: 1/4 for a problem that was never tried, never 0.
double difficulty_weight(const SuccessCount& last);

// Error(ErrorKind::config) where data.weights and the sources of the problems are not the same.
void check_sources(const TrainConfig& config, const TrainingSet& data);

}  // namespace ucas
