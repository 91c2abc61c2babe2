#include "train/gradient_exchange.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "train/sharded_gradients.h"

namespace ucas {

std::string sum_of_doubles(Ranks& ranks, const std::string& mine) {
  std::vector<double> sum(mine.size() / sizeof(double)), part(sum.size());
  for (const std::string& bytes : ranks.all_gather("summing the metrics of losses", mine)) {
    UCAS_CHECK(bytes.size() == mine.size(), "the metrics that a rank sends must be complete");
    std::memcpy(part.data(), bytes.data(), bytes.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return {reinterpret_cast<const char*>(sum.data()), mine.size()};
}

int64_t Among::budget_of(int64_t token_budget, const Batch& batch, std::span<const int64_t> responses) const {
  if (!several() || ordered) return token_budget;
  int64_t tokens = 0;
  for (int64_t index : responses) tokens += batch.responses[index].length;
  return std::min(token_budget, std::max<int64_t>(tokens / ranks->size(), 1));
}

LossMetrics learn_sharded(const ObjectiveInput& in, int64_t micros, LossMetrics& metrics,
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
    const std::string mine = rank == ranks.rank() ? bytes_of(metrics) : "";
    metrics = of_bytes<LossMetrics>(ranks.all_gather("telling the metrics of losses", mine)[static_cast<size_t>(rank)]);
  }
  return metrics;
}

void share_record(const ObjectiveInput& in, TokenUpdates& noted) {
  std::vector<float> clipped(noted.clipped.begin(), noted.clipped.end());
  const auto n = static_cast<int64_t>(clipped.size());
  in.ranks->all_reduce("sharing what updates made of tokens", {{at::from_blob(noted.ratio.data(), {n}, at::kFloat),
                                                                at::from_blob(clipped.data(), {n}, at::kFloat)}});
  for (int64_t index : in.responses) {
    const Response& o = in.batch.responses[index];
    for (int64_t t = o.first; t < o.first + o.length; ++t) {
      in.record->ratio[t] = noted.ratio[t];
      in.record->clipped[t] = static_cast<uint8_t>(clipped[t]);
    }
  }
}

}  // namespace ucas
