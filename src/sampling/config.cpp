#include "base/fields.h"
#include "sampling/engine_config.h"
#include "sampling/rollout.h"

namespace ucas {

void SamplingConfig::fields(Fields& f) {
  f.field("temperature", temperature, Range{0, 100}, "sampling temperature; 0 = greedy");
  f.field("top_p", top_p, Range{1e-6, 1}, "keep the most probable tokens up to this mass; 1 = all");
  f.field("top_k", top_k, Range{0, 1 << 24}, "keep this many of the most probable tokens; 0 = all");
  f.field("min_p", min_p, Range{0, 1},
          "keep tokens of at least this share of the most probable one's probability; 0 = all");
  f.field("max_tokens", max_tokens, Range{1, 1 << 24}, "longest response in tokens, end token included");
}

void EngineConfig::fields(Fields& f) {
  f.field("max_slots", max_slots, Range{0, 1 << 16}, "responses decoded at once; 0 = as many as cache_mb allows");
  f.field("cache_mb", cache_mb, Range{0, 1 << 24},
          "memory for keys and values, in MiB; 0 = 2,048, on a GPU 3/4 of what the model leaves of it");
  f.field("prefill_tokens", prefill_tokens, Range{16, 1 << 24}, "prompt tokens per prefill pass");
}

}  // namespace ucas
