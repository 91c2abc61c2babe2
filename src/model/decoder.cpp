#include "model/decoder.h"

#include <algorithm>

#include "rollout/sampling/kv_budget.h"

namespace ucas {

namespace {

class StepwiseDecoder final : public Decoder {
 public:
  StepwiseDecoder(Model& model, KvCache& cache, const SamplingConfig& sampling)
      : model_(model), cache_(cache), sampler_(model.head().make_sampler(sampling)) {}

  std::vector<SampledToken> next(std::span<const Lane> lanes) override {
    std::vector<int32_t> token, position;
    std::vector<int64_t> slot;
    for (const Lane& lane : lanes) {
      token.push_back(lane.token);
      position.push_back(lane.position);
      slot.push_back(lane.slot);
    }
    const at::Tensor hidden = model_.decode(token, position, slot, cache_);
    const auto n = static_cast<int64_t>(lanes.size()), rows = logit_rows(model_.config().vocab_size);
    std::vector<SampledToken> sampled;
    for (int64_t first = 0; first < n; first += rows) {
      const int64_t count = std::min(rows, n - first);
      std::vector<SampleRequest> asks;
      for (int64_t i = 0; i < count; ++i) asks.push_back({i, lanes[first + i].key, lanes[first + i].greedy});
      const std::vector<SampledToken> part =
          sampler_->sample(model_.head().logits(hidden.narrow(0, first, count)), asks);
      sampled.insert(sampled.end(), part.begin(), part.end());
    }
    return sampled;
  }

 private:
  Model& model_;
  KvCache& cache_;
  std::unique_ptr<TokenSampler> sampler_;
};

}  // namespace

std::unique_ptr<Decoder> make_stepwise_decoder(Model& model, KvCache& cache, const SamplingConfig& sampling) {
  return std::make_unique<StepwiseDecoder>(model, cache, sampling);
}

}  // namespace ucas
