// How far a training has come in its problems, and which come next. Each epoch has all of them in a new order. Seed and
// cursor alone decide, so a resumed run selects what an uninterrupted one would. Fed by train/collect.
#pragma once

#include <cstdint>
#include <vector>

#include "config/train_config.h"

namespace ucas {

// The run's place in its problems. Part of the checkpoint; nothing is replayed on resume.
struct DataCursor {
  int64_t epoch = 0;
  int64_t index = 0;      // next position in epoch_order(seed, epoch)
  int64_t fruitless = 0;  // prompts generated since the last kept group
  int64_t selected(int64_t problems) const { return epoch * problems + index; }  // prompts, since the run began
};

// Prompts that remain in train.epochs epochs of so many problems; unlimited where train.steps gives the run's length.
int64_t prompts_left(const TrainConfig& config, int64_t problems, const DataCursor& cursor);

// Of so many problems those of the next generation batch, across epochs. The last batch of a run may be smaller.
std::vector<int64_t> next_problems(const TrainConfig& config, int64_t problems, DataCursor& cursor);

}  // namespace ucas
