#include "model/qwen2.h"

#include <c10/core/GradMode.h>

#include "base/error.h"
#include "base/str.h"
#include "model/generic.h"
#include "model/native.h"

namespace ucas {

namespace {

class Qwen2 : public Model {
 public:
  Qwen2(const Qwen2Config& config, Weights weights, Path path)
      : config_(config), weights_(std::move(weights)), generic_(config_, weights_), native_(config_, weights_) {
    use_native_ = path == Path::automatic && weights_.embed.device().is_cpu();
  }

  const Qwen2Config& config() const override { return config_; }
  at::Device device() const override { return weights_.embed.device(); }
  at::Tensor lm_head() override { return weights_.head; }
  std::vector<NamedTensor> parameters() override { return weights_.parameters; }
  const Weights& weights() const { return weights_; }

  at::Tensor hidden(const Packed& packed) override {
    check(packed);
    return use_native_ ? native_.hidden(packed) : generic_.hidden(packed);
  }
  std::unique_ptr<KvCache> make_cache(int64_t slots, int64_t length) override {
    return use_native_ ? native_.make_cache(slots, length) : generic_.make_cache(slots, length);
  }
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) override {
    check(packed);
    UCAS_CHECK(slots.size() + 1 == packed.begin.size(), "one slot for each sequence");
    for (size_t s = 0; s < slots.size(); ++s)
      UCAS_CHECK(slots[s] >= 0 && slots[s] < cache.slots() && packed.begin[s + 1] - packed.begin[s] <= cache.length(),
                 "prefilling inside the cache");
    c10::NoGradGuard no_grad;
    return use_native_ ? native_.prefill(packed, cache, slots) : generic_.prefill(packed, cache, slots);
  }
  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache) override {
    UCAS_CHECK(token.size() == position.size() && token.size() == slot.size() && !token.empty(),
               "a token, a position and a slot for each row");
    check_tokens(token);
    for (size_t i = 0; i < token.size(); ++i)
      UCAS_CHECK(position[i] >= 0 && position[i] < cache.length() && slot[i] >= 0 && slot[i] < cache.slots(),
                 "decoding inside the cache");
    c10::NoGradGuard no_grad;
    return use_native_ ? native_.decode(token, position, slot, cache) : generic_.decode(token, position, slot, cache);
  }

 private:
  void check_tokens(std::span<const int32_t> token) const {
    for (int32_t id : token)
      if (id < 0 || id >= config_.vocab_size)
        throw Error("tokenizer", str("token id ", id, " is outside the model's vocabulary of ", config_.vocab_size,
                                     "; do tokenizer and checkpoint belong together?"));
  }
  void check(const Packed& packed) const {
    const auto& begin = packed.begin;
    UCAS_CHECK(begin.size() >= 2 && begin.front() == 0, "at least one sequence");
    UCAS_CHECK(begin.back() == static_cast<int64_t>(packed.token.size()), "sequences cover the tokens");
    UCAS_CHECK(packed.position.size() == packed.token.size() && !packed.token.empty(), "a position for each token");
    for (size_t s = 0; s + 1 < begin.size(); ++s)
      for (int64_t row = begin[s]; row < begin[s + 1]; ++row)
        UCAS_CHECK(packed.position[static_cast<size_t>(row)] == row - begin[s], "positions count from 0");
    check_tokens(packed.token);
  }

  Qwen2Config config_;
  Weights weights_;
  GenericForward generic_;
  NativeForward native_;
  bool use_native_;
};

}  // namespace

std::unique_ptr<Model> make_qwen2(const Qwen2Config& config, Weights weights, Path path) {
  return std::make_unique<Qwen2>(config, std::move(weights), path);
}

std::unique_ptr<Model> generic_view(Model& model) {
  auto& qwen2 = dynamic_cast<Qwen2&>(model);
  return make_qwen2(qwen2.config(), qwen2.weights(), Path::generic);
}

}  // namespace ucas
