#include "sharding/gradient_schedule.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sharding/sharded_gradients.h"

namespace ucas {

namespace {

// Metrics travel as their bytes.
std::string bytes_of(std::span<const double> metrics) {
  return {reinterpret_cast<const char*>(metrics.data()), metrics.size_bytes()};
}
void read_bytes(const std::string& bytes, std::span<double> metrics) {
  UCAS_CHECK(bytes.size() == metrics.size_bytes(), "the metrics that a rank sends must be complete");
  std::memcpy(metrics.data(), bytes.data(), bytes.size());
}

void work_off(RankShare share, const GradientSchedule::Work& work) {
  for (int64_t micro = share.first; micro < share.last; ++micro) work(micro);
}

std::vector<at::Tensor> gradients_of(std::span<const NamedTensor> parameters) {
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& p : parameters) gradients.push_back(gradient_of(p.tensor));
  return gradients;
}

class Local final : public GradientSchedule {
 public:
  explicit Local(std::span<const NamedTensor> parameters) : parameters_(parameters.begin(), parameters.end()) {}
  // An update by nothing is one all the same: moments fade and weights decay, so each parameter needs its gradient of
  // 0.
  void learn(int64_t micros, const Work& work) override {
    if (micros == 0) gradients_of(parameters_);
    work_off({0, micros}, work);
  }
  void read(int64_t micros, const Work& work) override { work_off({0, micros}, work); }
  void finish() override {}

 private:
  const std::vector<NamedTensor> parameters_;
};

class OverRanks : public GradientSchedule {
 public:
  OverRanks(Ranks& ranks, std::span<double> metrics) : ranks_(ranks), metrics_(metrics) {}

 protected:
  // Each rank's share, one rank after the other: gradients and metrics go from rank to rank, and the last one's to all.
  void in_turn(std::span<const at::Tensor> gradients, int64_t micros, const Work& work) {
    std::string bytes = bytes_of(metrics_);
    ranks_.in_turn("adding gradients in turn", gradients, bytes, [&] {
      read_bytes(bytes, metrics_);
      work_off(share_of(ranks_, micros), work);
      bytes = bytes_of(metrics_);
    });
    read_bytes(bytes, metrics_);
  }
  void sum_metrics() {
    std::vector<double> sum(metrics_.size()), part(metrics_.size());
    for (const std::string& bytes : ranks_.all_gather("summing the metrics of losses", bytes_of(metrics_))) {
      read_bytes(bytes, part);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    std::ranges::copy(sum, metrics_.begin());
  }
  Ranks& ranks_;
  const std::span<double> metrics_;
};

// update.reduce = "sum": all at once, then one sum over ranks.
class Summed final : public OverRanks {
 public:
  Summed(Ranks& ranks, std::span<double> metrics, std::vector<at::Tensor> gradients)
      : OverRanks(ranks, metrics), gradients_(std::move(gradients)) {}
  void learn(int64_t micros, const Work& work) override { work_off(share_of(ranks_, micros), work); }
  void read(int64_t micros, const Work& work) override { work_off(share_of(ranks_, micros), work); }
  void finish() override {
    ranks_.all_reduce("summing gradients", gradients_);
    sum_metrics();
  }

 private:
  const std::vector<at::Tensor> gradients_;
};

// update.reduce = "ordered": the bits of one process, one rank at a time.
class Ordered final : public OverRanks {
 public:
  Ordered(Ranks& ranks, std::span<double> metrics, std::vector<at::Tensor> gradients)
      : OverRanks(ranks, metrics), gradients_(std::move(gradients)) {}
  void learn(int64_t micros, const Work& work) override { in_turn(gradients_, micros, work); }
  void read(int64_t micros, const Work& work) override { in_turn({}, micros, work); }
  void finish() override {}

 private:
  const std::vector<at::Tensor> gradients_;
};

// update.shard = "gradients": a block's gradients go to their owners as the backward pass leaves it.
class SummedShards final : public OverRanks {
 public:
  SummedShards(Ranks& ranks, std::span<double> metrics, ShardedGradients& shards)
      : OverRanks(ranks, metrics), shards_(shards) {}
  // As many passes on every rank, with or without work.
  void learn(int64_t micros, const Work& work) override {
    shards_.begin();
    const RankShare mine = share_of(ranks_, micros);
    for (int64_t i = 0; i < (micros + ranks_.size() - 1) / ranks_.size(); ++i) {
      const int64_t micro = mine.first + i;
      shards_.pass(micro < mine.last ? [&] { work(micro); } : std::function<void()>());
    }
  }
  void read(int64_t micros, const Work& work) override { work_off(share_of(ranks_, micros), work); }
  void finish() override { sum_metrics(); }

 private:
  ShardedGradients& shards_;
};

class OrderedShards final : public OverRanks {
 public:
  OrderedShards(Ranks& ranks, std::span<double> metrics, ShardedGradients& shards)
      : OverRanks(ranks, metrics), shards_(shards) {}
  void learn(int64_t micros, const Work& work) override {
    shards_.begin();
    for (int64_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankShare share{micros * rank / ranks_.size(), micros * (rank + 1) / ranks_.size()};
      work_off(share, [&](int64_t micro) { shards_.pass_of(rank, [&] { work(micro); }); });
      const std::string mine = rank == ranks_.rank() ? bytes_of(metrics_) : "";
      read_bytes(ranks_.all_gather("telling the metrics of losses", mine)[static_cast<size_t>(rank)], metrics_);
    }
  }
  void read(int64_t micros, const Work& work) override { in_turn({}, micros, work); }
  void finish() override {}

 private:
  ShardedGradients& shards_;
};

}  // namespace

int64_t Among::budget_of(int64_t token_budget, const Batch& batch, std::span<const int64_t> responses) const {
  if (!several() || ordered) return token_budget;
  int64_t tokens = 0;
  for (int64_t index : responses) tokens += batch.responses[index].length_with_inserts();
  return std::min(token_budget, std::max<int64_t>(tokens / ranks->size(), 1));
}

std::unique_ptr<GradientSchedule> make_schedule(const Among& among, std::span<const NamedTensor> parameters,
                                                std::span<double> metrics) {
  if (!among.several()) return std::make_unique<Local>(parameters);
  Ranks& ranks = *among.ranks;
  if (among.shards != nullptr && among.ordered) return std::make_unique<OrderedShards>(ranks, metrics, *among.shards);
  if (among.shards != nullptr) return std::make_unique<SummedShards>(ranks, metrics, *among.shards);
  if (among.ordered) return std::make_unique<Ordered>(ranks, metrics, gradients_of(parameters));
  return std::make_unique<Summed>(ranks, metrics, gradients_of(parameters));
}

}  // namespace ucas
