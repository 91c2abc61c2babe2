#include "train/signals/pack.h"

#include "base/error.h"

namespace ucas {

std::vector<MicroBatch> pack(std::span<const int64_t> lengths, int64_t max_tokens, std::span<const int64_t> prefix,
                             std::span<const uint8_t> shares) {
  UCAS_CHECK(max_tokens > 0, "expected a token budget above 0");
  std::vector<MicroBatch> batches;
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    const int64_t alone = lengths[i] + (prefix.empty() ? 0 : prefix[i]);
    int64_t joined = prefix.empty() || shares[i] == 0 ? alone : lengths[i];
    if (batches.empty() || (batches.back().tokens > 0 && batches.back().tokens + joined > max_tokens)) {
      batches.push_back({at, at, 0});
      joined = alone;
    }
    batches.back().last = at + 1;
    batches.back().tokens += joined;
  }
  return batches;
}

}  // namespace ucas
