// Options [update]: mini-batches, micro-batches, and what ranks share of them.
#pragma once

#include <array>
#include <cstdint>

#include "base/text/fields.h"
#include "core/model_options.h"

namespace ucas {

// How the gradients of micro-batches are summed: in place, in whatever order is fastest, or each from zero and then
// added in the order of the micro-batches, which is bit-identical for any number of ranks.
enum class Reduce : uint8_t { sum, micro };
// f32 that ranks exchange at once under `micro`, of all of them together: two buffers of 64 MiB at most.
constexpr int64_t kExchangeElements = 1 << 24;

// Whether master weights and moments of the policy are on the host instead of the device that trains
// (train/optimizer/host_state.h); automatic: where the plan of a GPU fits with it and not without.
enum class Offload : uint8_t { none, optimizer, automatic };
constexpr std::array<const char*, 3> names(Offload) { return {"none", "optimizer", "auto"}; }

struct UpdateConfig {
  int64_t mini_batch_size = 32;       // prompts per optimizer update
  int64_t epochs = 1;                 // PPO epochs
  int64_t micro_batch_tokens = 4096;  // token budget of one forward and backward pass
  Recompute recompute = Recompute::none;
  Reduce reduce = Reduce::sum;
  Shard shard = Shard::moments;
  Offload offload = Offload::none;
  // Whether each of several ranks ends a backward pass with the gradients of its own parameters alone.
  bool gradients_by_owner() const { return shard == Shard::gradients || reduce == Reduce::micro; }
  void fields(Fields& f);
};

}  // namespace ucas
