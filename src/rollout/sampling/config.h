// Options of the rollout engine. None of them changes what is generated on the CPU, only how fast and in how much
// memory.
#pragma once

#include <cstdint>

#include "base/text/fields.h"

namespace ucas {

struct SamplingConfig {
  double temperature = 1.0;  // 0 = greedy
  double top_p = 1.0;
  int64_t top_k = 0;                                                      // 0 = off
  double min_p = 0;                                                       // 0 = off
  int64_t max_tokens = 1024;                                              // response limit, end token included
  bool truncates() const { return top_k > 0 || top_p < 1 || min_p > 0; }  // samples from less than all tokens
  void fields(Fields& f);
};

struct EngineConfig {
  int64_t max_slots = 0;  // responses decoded at once; 0 = as many as cache_mb allows, at most 256 (a GPU: 1,024)
  int64_t cache_mb = 0;  // MiB of keys and values where max_slots is 0; 0 = 2,048 (a GPU: 3/4 of what the model leaves)
  int64_t cache_tokens = 0;       // that slots which share their memory hold together; 0 = what fits into that memory
  int64_t prefill_tokens = 4096;  // token budget of one packed prefill; one longer prompt goes alone
  void fields(Fields& f);
};

}  // namespace ucas
