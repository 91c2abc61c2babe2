// Batched decoding on the model's device: each call gives the next token of every lane.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"
#include "model/model.h"
#include "rollout/sampling/kv_budget.h"
#include "rollout/sampling/sampler.h"

namespace ucas {

// An active sequence: `token` is its last one, to be fed at `position`.
struct Lane {
  int64_t slot;  // of its keys and values
  int32_t token, position;
  int64_t left;   // how many tokens may still follow, one at least
  SampleKey key;  // of the next one
  bool greedy;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Steps times lanes tokens: each lane's next one, then each lane's second. A device samples several steps at once;
  // what follows the end of a response, or of its room, is for the caller to ignore. Rows that are not finite give
  // token -1. The cache must have room for most_steps() more tokens of each.
  virtual std::vector<SampledToken> next(std::span<const Lane> lanes) = 0;
  virtual int64_t most_steps() const { return 1; }
};

// Step by step through the model's own decode() and sampler, on any device.
std::unique_ptr<Decoder> make_stepwise_decoder(Model& model, KvCache& cache, const SamplingConfig& sampling);

}  // namespace ucas
