#include "train/pack.h"

#include "base/error.h"

namespace ucas {

std::vector<MicroBatch> pack(std::span<const int64_t> lengths, int64_t max_tokens) {
  UCAS_CHECK(max_tokens > 0, "expected a token budget above 0");
  std::vector<MicroBatch> batches;
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    if (batches.empty() || (batches.back().tokens > 0 && batches.back().tokens + lengths[i] > max_tokens)) {
      batches.push_back({at, at, 0});
    }
    batches.back().last = at + 1;
    batches.back().tokens += lengths[i];
  }
  return batches;
}

}  // namespace ucas
