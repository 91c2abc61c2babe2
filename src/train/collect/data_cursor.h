// How far a training has come in its problems.
#pragma once

#include <cstdint>

#include "core/batch.h"

namespace ucas {

// Where the run stands in its problems. Part of the checkpoint; nothing is replayed on resume.
struct DataCursor {
  int64_t epoch = 0;
  int64_t index = 0;      // next position in epoch_order(seed, epoch)
  int64_t fruitless = 0;  // prompts generated since the last kept group
  Batch carry_over = {};  // groups of the last step that nothing was trained on yet (rollout.carry_over)
  int64_t selected(int64_t problems) const { return epoch * problems + index; }  // prompts, since the run began
};

}  // namespace ucas
