// What ranks exchange of a mini-batch that each has worked off a part of. Every call is made by all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "model/linear.h"
#include "model/model.h"
#include "objective/aggregate.h"
#include "train/gradients.h"
#include "train/ranks.h"

namespace ucas {

// What is noted of a mini-batch, of doubles alone, travels as its bytes.
template <class Metrics>
std::string bytes_of(const Metrics& metrics) {
  static_assert(std::is_trivially_copyable_v<Metrics> && sizeof(Metrics) % sizeof(double) == 0);
  return {reinterpret_cast<const char*>(&metrics), sizeof metrics};
}
template <class Metrics>
Metrics of_bytes(const std::string& bytes) {
  Metrics metrics;
  UCAS_CHECK(bytes.size() == sizeof metrics, "the metrics that a rank sends must be complete");
  std::memcpy(&metrics, bytes.data(), sizeof metrics);
  return metrics;
}
std::string sum_of_doubles(Ranks& ranks, const std::string& mine);

// The sums of what each has.
template <class Metrics>
Metrics sum_of(Ranks& ranks, const Metrics& mine) {
  return of_bytes<Metrics>(sum_of_doubles(ranks, bytes_of(mine)));
}
// Each rank's turn, one after the other: `metrics` and the gradients go from rank to rank, and the last one's to all.
template <class Metrics>
Metrics in_turn(Ranks& ranks, std::span<const at::Tensor> gradients, Metrics& metrics,
                const std::function<void()>& turn) {
  std::string bytes = bytes_of(metrics);
  ranks.in_turn("adding gradients in turn", gradients, bytes, [&] {
    metrics = of_bytes<Metrics>(bytes);
    turn();
    bytes = bytes_of(metrics);
  });
  return of_bytes<Metrics>(bytes);
}
// Where ranks keep shares of gradients: works off the micro-batches, `learn` those of this rank, which adds to
// `metrics`. In order all end with the same; by sums each with its own part.
LossMetrics learn_sharded(const ObjectiveInput& in, int64_t micros, LossMetrics& metrics,
                          const std::function<void(int64_t micro)>& learn);
// Into in.record: each rank has noted the tokens of its micro-batches, [N], and 0 for all others.
void share_record(const ObjectiveInput& in, TokenUpdates& noted);

// Who works off the update of a model beside the policy.
struct Among {
  Ranks* ranks = nullptr;  // null: this one alone
  bool ordered = false;    // the bits of one process, else sums
  bool several() const { return ranks != nullptr && !ranks->alone(); }
  // By sums there is a micro-batch for each rank at least.
  int64_t budget_of(int64_t token_budget, const Batch& batch, std::span<const int64_t> responses) const;
};

// `learn` adds the gradients of a micro-batch to those of `parameters`, and to `metrics`: all ranks end with the whole.
template <class Metrics>
void learn_among(const Among& among, std::span<const NamedTensor> parameters, int64_t micros, Metrics& metrics,
                 const std::function<void(int64_t micro)>& learn) {
  const auto learn_share = [&](RankShare share) {
    for (int64_t micro = share.first; micro < share.last; ++micro) learn(micro);
  };
  if (!among.several()) return learn_share({0, micros});
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& p : parameters) gradients.push_back(gradient_of(p.tensor));
  const auto learn_mine = [&] { learn_share(share_of(*among.ranks, micros)); };
  if (among.ordered) {
    metrics = in_turn(*among.ranks, gradients, metrics, learn_mine);
    return;
  }
  learn_mine();
  among.ranks->all_reduce("summing gradients", gradients);
  metrics = sum_of(*among.ranks, metrics);
}

}  // namespace ucas
