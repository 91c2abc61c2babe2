// Options [update]: mini-batches, micro-batches, and what ranks share of them.
#pragma once

#include <cstdint>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "core/optimizer_config.h"

namespace ucas {

// How gradients of several ranks become one: by a sum, or one rank after the other, in the order of one process.
enum class Reduce : uint8_t { sum, ordered };

struct UpdateConfig {
  int64_t mini_batch_size = 32;       // prompts per optimizer update
  int64_t epochs = 1;                 // passes over each step's batch
  int64_t micro_batch_tokens = 4096;  // token budget of one forward and backward pass
  Recompute recompute = Recompute::none;
  Reduce reduce = Reduce::sum;
  Shard shard = Shard::moments;
  void fields(Fields& f);
};

}  // namespace ucas
