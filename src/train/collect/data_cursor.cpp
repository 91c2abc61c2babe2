#include "train/collect/data_cursor.h"

#include <algorithm>
#include <limits>

#include "base/rng.h"

namespace ucas {

int64_t prompts_left(const TrainConfig& config, int64_t problems, const DataCursor& cursor) {
  if (!config.uses_passes()) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(0, config.train.epochs * problems - cursor.selected(problems));
}

std::vector<int64_t> next_problems(const TrainConfig& config, int64_t problems, DataCursor& cursor) {
  std::vector<int64_t> picked, order;
  int64_t order_epoch = -1;
  while (std::ssize(picked) < config.gen_batch() && prompts_left(config, problems, cursor) > 0) {
    if (cursor.index >= problems) {
      cursor.index = 0;
      ++cursor.epoch;
    }
    if (order_epoch != cursor.epoch && config.data.shuffle) {
      order = epoch_order(static_cast<uint64_t>(config.seed), cursor.epoch, problems);
      order_epoch = cursor.epoch;
    }
    picked.push_back(config.data.shuffle ? order[cursor.index] : cursor.index);
    ++cursor.index;
  }
  return picked;
}

}  // namespace ucas
