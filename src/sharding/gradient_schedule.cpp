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

// Metrics of all ranks, one after the other.
std::vector<std::string> gather_metrics(Ranks& ranks, std::span<const double> metrics) {
  return ranks.all_gather("gathering the metrics of losses", bytes_of(metrics));
}
void add_to(std::span<double> sum, std::span<const double> part) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

class OverRanks : public GradientSchedule {
 public:
  OverRanks(Ranks& ranks, std::span<double> metrics) : ranks_(ranks), metrics_(metrics) {}
  void read(int64_t micros, const Work& work) override { work_off(share_of(ranks_, micros), work); }

 protected:
  void sum_metrics() {
    std::vector<double> sum(metrics_.size()), part(metrics_.size());
    for (const std::string& bytes : gather_metrics(ranks_, metrics_)) {
      read_bytes(bytes, part);
      add_to(sum, part);
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
  void finish() override {
    ranks_.all_reduce("summing gradients", gradients_);
    sum_metrics();
  }

 private:
  const std::vector<at::Tensor> gradients_;
};

// And update.shard = "gradients": a block's gradients go to their owners when the backward pass is done with it.
class SummedShards final : public OverRanks {
 public:
  SummedShards(Ranks& ranks, std::span<double> metrics, Model& model, std::span<const NamedTensor> parameters,
               const Among& among)
      : OverRanks(ranks, metrics), shards_(model, parameters, among.owners, ranks, {Reduce::sum, Shard::gradients}) {}
  // As many passes on every rank, with or without work.
  void learn(int64_t micros, const Work& work) override {
    shards_.begin();
    const RankShare mine = share_of(ranks_, micros);
    for (int64_t i = 0; i < (micros + ranks_.size() - 1) / ranks_.size(); ++i) {
      const int64_t micro = mine.first + i;
      shards_.pass(micro < mine.last ? [&] { work(micro); } : std::function<void()>(), ranks_.size());
    }
  }
  void finish() override { sum_metrics(); }

 private:
  ShardedGradients shards_;
};

// update.reduce = "micro": waves of one micro-batch for each rank.
class InWaves final : public GradientSchedule {
 public:
  InWaves(const Among& among, std::span<double> metrics, Model& model, std::span<const NamedTensor> parameters)
      : alone_(among.ranks == nullptr ? alone() : nullptr),
        ranks_(alone_ ? *alone_ : *among.ranks),
        metrics_(metrics),
        before_(metrics.begin(), metrics.end()),
        shards_(model, parameters, among.owners, ranks_, {Reduce::micro, among.shard}) {}

  void learn(int64_t micros, const Work& work) override {
    learnt_ = micros;
    shards_.begin();
    for (int64_t first = 0; first < micros; first += ranks_.size()) {
      const int64_t micro = first + ranks_.rank();
      shards_.pass(micro < micros ? [&] { note(micro, work); } : std::function<void()>(),
                   std::min(ranks_.size(), micros - first));
    }
  }
  void read(int64_t micros, const Work& work) override {
    read_ = micros;
    for (int64_t micro = ranks_.rank(); micro < micros; micro += ranks_.size()) note(micro, work);
  }
  // Those of each micro-batch from zero, added in their order as well.
  void finish() override {
    const size_t n = metrics_.size();
    std::vector<std::vector<double>> of_ranks;
    for (const std::string& bytes : gather_metrics(ranks_, noted_)) {
      read_bytes(bytes, of_ranks.emplace_back(bytes.size() / sizeof(double)));
    }
    std::vector<size_t> next(of_ranks.size());
    std::ranges::copy(before_, metrics_.begin());
    for (const int64_t micros : {learnt_, read_}) {
      for (int64_t micro = 0; micro < micros; ++micro) {
        const auto rank = static_cast<size_t>(micro % ranks_.size());
        add_to(metrics_, std::span(of_ranks[rank]).subspan(n * next[rank]++, n));
      }
    }
  }

 private:
  void note(int64_t micro, const Work& work) {
    std::ranges::fill(metrics_, 0.0);
    work(micro);
    noted_.insert(noted_.end(), metrics_.begin(), metrics_.end());
  }

  const std::unique_ptr<Ranks> alone_;
  Ranks& ranks_;
  const std::span<double> metrics_;
  const std::vector<double> before_;
  std::vector<double> noted_;  // of each micro-batch here
  int64_t learnt_ = 0, read_ = 0;
  ShardedGradients shards_;
};

}  // namespace

std::unique_ptr<GradientSchedule> make_schedule(const Among& among, Model& model,
                                                std::span<const NamedTensor> parameters, std::span<double> metrics) {
  if (among.reduce == Reduce::micro) return std::make_unique<InWaves>(among, metrics, model, parameters);
  if (!among.several()) return std::make_unique<Local>(parameters);
  Ranks& ranks = *among.ranks;
  if (among.shard == Shard::gradients) {
    return std::make_unique<SummedShards>(ranks, metrics, model, parameters, among);
  }
  return std::make_unique<Summed>(ranks, metrics, gradients_of(parameters));
}

}  // namespace ucas
