#include "train/collect/data_order.h"

#include <algorithm>

#include "base/rng.h"

namespace ucas {

std::vector<int64_t> next_problems(const TrainConfig& config, const TrainingSet& data, DataCursor& cursor,
                                   int64_t most) {
  const int64_t total = data.size();
  const auto count = static_cast<size_t>(std::min(config.gen_batch(), most));
  std::vector<int64_t> picked, order;
  int64_t order_epoch = -1;
  while (picked.size() < count && prompts_left(config, total, cursor) > 0) {
    if (cursor.index >= total) {
      cursor.index = 0;
      ++cursor.epoch;
    }
    if (order_epoch != cursor.epoch && config.data.shuffle) {
      order = epoch_order(static_cast<uint64_t>(config.seed), cursor.epoch, total);
      order_epoch = cursor.epoch;
    }
    picked.push_back(config.data.shuffle ? order[cursor.index] : cursor.index);
    ++cursor.index;
  }
  return picked;
}

}  // namespace ucas
