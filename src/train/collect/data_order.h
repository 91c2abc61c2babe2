// Data order: selects the next problems. Each epoch has all of them in a new order. Seed and cursor alone decide, so a
// resumed run selects what an uninterrupted one would. Fed by train/collect.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "train/collect/collect.h"

namespace ucas {

// The problems of the next generation batch, across epochs. The last batch of a run may be smaller. `most`: fewer than
// a batch, which are its first ones.
std::vector<int64_t> next_problems(const TrainConfig& config, const TrainingSet& data, DataCursor& cursor,
                                   int64_t most = std::numeric_limits<int64_t>::max());

}  // namespace ucas
