// Every call of Ranks against what this process computes of the same numbers by itself, with its speed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sharding/ranks.h"

namespace ucas {

struct RanksFinding {
  std::string what;
  int64_t bytes = 0;   // that a rank gives to the call
  double seconds = 0;  // of the fastest of three, on the slowest rank
  bool ok = false;     // the expected bits, on every rank
};

// All ranks call. Tensors of `elements` f32 on `device`; whole numbers, whose sum is the same in any order, but for
// what promises an order.
std::vector<RanksFinding> check_ranks(Ranks& ranks, at::Device device, int64_t elements);

}  // namespace ucas
