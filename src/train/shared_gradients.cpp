#include "train/shared_gradients.h"

#include <ATen/ops/from_blob.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/sharded_gradients.h"

namespace ucas {

namespace {

using Numbers = std::array<double, sizeof(LossMetrics) / sizeof(double)>;  // all that it holds

LossMetrics of_bytes(const std::string& bytes) {
  Numbers numbers{};
  UCAS_CHECK(bytes.size() == sizeof numbers, "what a rank sends is whole");
  std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
  return std::bit_cast<LossMetrics>(numbers);
}
std::string bytes_of(const LossMetrics& metrics) { return {reinterpret_cast<const char*>(&metrics), sizeof metrics}; }

}  // namespace

LossMetrics sum_of(Ranks& ranks, const LossMetrics& mine) {
  Numbers sum{}, part{};
  for (const std::string& bytes : ranks.gather(bytes_of(mine))) {
    std::memcpy(part.data(), bytes.data(), sizeof part);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return std::bit_cast<LossMetrics>(sum);
}

LossMetrics in_turn(Ranks& ranks, std::span<const at::Tensor> gradients, LossMetrics& metrics,
                    const std::function<void()>& turn) {
  std::string bytes = bytes_of(metrics);
  ranks.in_turn(gradients, bytes, [&] {
    metrics = of_bytes(bytes);
    turn();
    bytes = bytes_of(metrics);
  });
  return of_bytes(bytes);
}

LossMetrics learn_in_shards(const ObjectiveInput& in, int64_t micros, LossMetrics& metrics,
                            const std::function<void(int64_t micro)>& learn) {
  Ranks& ranks = *in.ranks;
  const int64_t size = ranks.size();
  in.shards->begin();
  if (!in.ordered) {
    const RankShare mine = share_of(ranks, micros);
    for (int64_t i = 0; i < (micros + size - 1) / size; ++i) {
      const int64_t micro = mine.first + i;
      in.shards->pass(micro < mine.last ? [&] { learn(micro); } : std::function<void()>());
    }
    return metrics;
  }
  for (int64_t rank = 0; rank < size; ++rank) {
    const RankShare share{micros * rank / size, micros * (rank + 1) / size};
    for (int64_t micro = share.first; micro < share.last; ++micro) {
      in.shards->pass_of(rank, [&] { learn(micro); });
    }
    metrics = of_bytes(ranks.gather(rank == ranks.rank() ? bytes_of(metrics) : "")[static_cast<size_t>(rank)]);
  }
  return metrics;
}

void share_record(const ObjectiveInput& in, TokenUpdates& noted) {
  std::vector<float> clipped(noted.clipped.begin(), noted.clipped.end());
  const auto n = static_cast<int64_t>(clipped.size());
  in.ranks->add_up(
      {{at::from_blob(noted.ratio.data(), {n}, at::kFloat), at::from_blob(clipped.data(), {n}, at::kFloat)}});
  for (int64_t index : in.responses) {
    const Response& o = in.batch.responses[index];
    for (int64_t t = o.first; t < o.first + o.length; ++t) {
      in.record->ratio[t] = noted.ratio[t];
      in.record->clipped[t] = static_cast<uint8_t>(clipped[t]);
    }
  }
}

}  // namespace ucas
