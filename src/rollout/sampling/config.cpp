#include "rollout/sampling/config.h"

namespace ucas {

void SamplingConfig::fields(Fields& f) {
  f.field("temperature", temperature, Range{0, 100}, "sampling temperature; 0 = greedy");
  f.field("top_p", top_p, Range{1e-6, 1}, "probability mass of nucleus sampling; 1 = off");
  f.field("top_k", top_k, Range{0, 1 << 24}, "number of most probable tokens to sample from; 0 = off");
  f.field("min_p", min_p, Range{0, 1}, "minimum token probability as a fraction of the most probable token's; 0 = off");
  f.field("max_tokens", max_tokens, Range{1, 1 << 24}, "maximum response length in tokens, end token included");
}

void EngineConfig::fields(Fields& f) {
  f.field("max_slots", max_slots, Range{0, 1 << 16},
          "maximum sequences decoded at once; 0 = as many as cache_mb allows");
  f.field("cache_mb", cache_mb, Range{0, 1 << 24},
          "KV cache size in MiB; 0 = 2,048, on a GPU 3/4 of the memory that the model leaves");
  f.field("prefill_tokens", prefill_tokens, Range{16, 1 << 24}, "prompt tokens per prefill pass");
}

}  // namespace ucas
