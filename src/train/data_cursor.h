// How far a training has come in its problems.
#pragma once

#include <cstdint>
#include <map>

namespace ucas {

// Where the run stands in its problems. Part of the checkpoint; nothing is replayed on resume.
struct DataCursor {
  int64_t epoch = 0;
  int64_t index = 0;                       // next position in epoch_order(seed, epoch)
  int64_t fruitless = 0;                   // prompts generated since the last kept group
  std::map<int64_t, int64_t> solved = {};  // by problem: the step at which all its responses were right, while it rests
  int64_t drawn(int64_t problems) const { return epoch * problems + index; }  // prompts, since the run began
};

}  // namespace ucas
