// How far a training has come in its problems.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/batch.h"

namespace ucas {

// How the last responses to a problem went.
struct SuccessCount {
  int64_t right = 0, responses = 0;
};

// How far a run is in a data source of its own weight.
struct SourceProgress {
  int64_t position = 0;  // in its own epochs, those that rest included
  int64_t selected = 0;
};

// Where the run stands in its problems. Part of the checkpoint; nothing is replayed on resume.
struct DataCursor {
  int64_t epoch = 0;
  int64_t index = 0;                       // next position in epoch_order(seed, epoch)
  int64_t fruitless = 0;                   // prompts generated since the last kept group
  std::map<int64_t, int64_t> solved = {};  // by problem: the step at which all its responses were right, while it rests
  std::map<int64_t, SuccessCount> seen = {};   // by problem: how its last responses went (data.order = "difficulty")
  std::vector<SourceProgress> of_source = {};  // of data.weights, in its order
  Batch carry_over = {};  // groups of the last step that nothing was trained on yet (rollout.carry_over)
  int64_t selected(int64_t problems) const { return epoch * problems + index; }  // prompts, since the run began
};

}  // namespace ucas
