// Which micro-batches of an update this process computes, and how gradients and metrics become those of the whole
// mini-batch. A single process computes all of them and communicates nothing. Of several ranks each takes some;
// update.reduce and update.shard say how sums are made. GradientPass and auxiliary models see nothing else of ranks.
// `sum`: each rank takes contiguous micro-batches and accumulates gradients in place. `micro`:
//   G = ((g_0 + g_1) + g_2) + ..,
// g_m the gradient of micro-batch m alone, from zero: m goes to rank m mod N, and after each wave of N micro-batches
// the owner of a parameter adds the ranks' gradients in rank order. So no bit of G depends on N or on update.shard.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/model_options.h"
#include "model/gemm/linear.h"
#include "model/model.h"
#include "sharding/ranks.h"
#include "train/update/config.h"

namespace ucas {

// The ranks that share an update.
struct Among {
  Ranks* ranks = nullptr;  // null: this process alone
  Reduce reduce = Reduce::sum;
  Shard shard = Shard::moments;
  std::vector<int64_t> owners = {};  // by parameter (Optimizer::owners()); alone: none

  bool several() const { return ranks != nullptr && !ranks->alone(); }
};

class GradientSchedule {
 public:
  using Work = std::function<void(int64_t micro)>;

  virtual ~GradientSchedule() = default;
  // Calls work(m) for this process's micro-batches, in order, m of [0, micros). `work` adds to gradients and metrics.
  virtual void learn(int64_t micros, const Work& work) = 0;
  // After learn(): the same of work that adds to the metrics alone.
  virtual void read(int64_t micros, const Work& work) = 0;
  // After both: the gradients of the parameters, or this rank's shards of them, and the metrics are the mini-batch's.
  virtual void finish() = 0;
};

// For one update of `parameters` of this model, or of what is built on it. `metrics` is read and written until
// finish(). Several ranks: every call of the schedule is made by all of them. Borrows all but `parameters`.
std::unique_ptr<GradientSchedule> make_schedule(const Among& among, Model& model,
                                                std::span<const NamedTensor> parameters, std::span<double> metrics);

// Metrics made of doubles alone.
template <class Metrics>
std::span<double> doubles_of(Metrics& metrics) {
  static_assert(std::is_trivially_copyable_v<Metrics> && sizeof(Metrics) % sizeof(double) == 0);
  return {reinterpret_cast<double*>(&metrics), sizeof(Metrics) / sizeof(double)};
}

}  // namespace ucas
