#include "model/transformer.h"

#include <c10/core/GradMode.h>

#include <mutex>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/decoder.h"
#include "model/forward.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

// Calls note(positions of a step's rows) for each step of a decoder that does not go through Model::decode().
class CountedDecoder final : public Decoder {
 public:
  CountedDecoder(std::unique_ptr<Decoder> decoder, std::function<void(std::span<const int32_t>)> note)
      : decoder_(std::move(decoder)), note_(std::move(note)) {}
  std::vector<SampledToken> next(std::span<const Lane> lanes) override {
    std::vector<SampledToken> sampled = decoder_->next(lanes);
    std::vector<int32_t> position;
    for (const Lane& lane : lanes) position.push_back(lane.position);
    for (size_t step = 0; step < sampled.size(); step += lanes.size()) {
      note_(position);
      for (int32_t& p : position) ++p;
    }
    return sampled;
  }
  int64_t most_steps() const override { return decoder_->most_steps(); }

 private:
  std::unique_ptr<Decoder> decoder_;
  std::function<void(std::span<const int32_t>)> note_;
};

class Transformer final : public Model {
 public:
  // What runs where is decided here, and nowhere else.
  Transformer(const ModelConfig& config, Weights weights, const ModelOptions& options, Path path)
      : config_(config), options_(options), weights_(std::move(weights)) {
    if (path == Path::automatic && device().is_cpu()) {
      forward_ = make_native_forward(config_, weights_, options_);
      head_ = make_native_head(weights_.head);
    } else if (path == Path::emulated || (path == Path::automatic && runs_kernels())) {
      forward_ = make_gpu_forward(config_, weights_, options_);
      head_ = make_gpu_head(weights_.head);
    } else {
      if (path == Path::automatic && config_.family->block.norms_after) say_slow_path();
      forward_ = make_aten_forward(config_, weights_, options_);
      head_ = make_aten_head(weights_.head);
    }
  }

  const ModelConfig& config() const override { return config_; }
  at::Device device() const override { return weights_.norm.device(); }
  const ModelOptions& options() const override { return options_; }
  Head& head() override { return *head_; }
  std::vector<NamedTensor> parameters() override { return weights_.parameters; }
  std::vector<NamedTensor> adapter() override { return weights_.adapter; }
  void refresh() override { weights_.refresh(); }
  std::vector<Bf16Copy> bf16_copies() override {
    const bool narrow = options_.dtype == Dtype::bf16 && forward_->backward_by_hand();
    return narrow ? trained_copies(weights_) : std::vector<Bf16Copy>();
  }
  std::vector<std::vector<at::Tensor>> set_backward_hook(BackwardHook* watch) override {
    std::vector<std::vector<at::Tensor>> layers;
    if (!forward_->backward_by_hand()) return layers;
    weights_.watch = watch;
    for (const Layer& layer : weights_.layers) layers.push_back(trained_leaves(layer));
    return layers;
  }
  std::unique_ptr<Model> merged() override {
    merge_adapter(weights_);
    return base();
  }
  std::unique_ptr<Model> base() override {
    ModelOptions options = options_;
    options.lora = {};
    options.trained = Trained::none;
    return std::make_unique<Transformer>(config_, without_adapter(weights_), options, Path::automatic);
  }
  const Weights& weights() const { return weights_; }

  at::Tensor hidden(const Packed& packed) override {
    check(packed, shares_prefixes());
    at::Tensor hidden = forward_->hidden(packed);
    note(packed.position, hidden.requires_grad() ? 3 : 1);
    return hidden;
  }
  Work work() const override {
    const Work& head = head_->work();
    return {work_.operations + head.operations, work_.bytes + head.bytes};
  }
  bool shares_prefixes() const override { return forward_->shares_prefixes(); }
  std::unique_ptr<KvCache> make_cache(int64_t slots, int64_t length, int64_t tokens) override {
    return make_cache({.slots = slots, .length = length, .tokens = tokens});
  }
  std::unique_ptr<KvCache> make_cache(const EngineRoom& room) { return forward_->make_cache(room); }
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) override {
    check(packed, false);
    UCAS_CHECK(slots.size() + 1 == packed.begin.size(), "expected one cache slot per sequence");
    for (size_t s = 0; s < slots.size(); ++s)
      UCAS_CHECK(slots[s] >= 0 && slots[s] < cache.slots() && packed.begin[s + 1] - packed.begin[s] <= cache.length(),
                 "prefilling inside the cache");
    c10::NoGradGuard no_grad;
    note(packed.position);
    return forward_->prefill(packed, cache, slots);
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
    note_step(position);
    return forward_->decode(token, position, slot, cache);
  }
  std::unique_ptr<Decoder> make_decoder(KvCache& cache, const SamplingConfig& sampling) override {
    auto own = forward_->make_decoder(*head_, cache, sampling);
    if (!own) return Model::make_decoder(cache, sampling);
    return std::make_unique<CountedDecoder>(std::move(own), [this](std::span<const int32_t> position) {
      note_step(position);
      head_->note_logits(static_cast<int64_t>(position.size()));
    });
  }

 private:
  void say_slow_path() const {
    static std::once_flag said;
    std::call_once(said, [&] {
      ucas::log(str(config_.family->title, " on ", device().str(),
                    ": runs by LibTorch's operations; the GPU kernels know no norms after attention and MLP"));
    });
  }
  bool runs_kernels() const { return has_kernels(device()) && suits_kernels(config_, options_); }
  void check_tokens(std::span<const int32_t> token) const {
    for (int32_t id : token)
      if (id < 0 || id >= config_.vocab_size)
        throw Error(ErrorKind::tokenizer, str("token id ", id, " is outside the model's vocabulary of ",
                                              config_.vocab_size, "; do tokenizer and checkpoint belong together?"));
  }
  void check(const Packed& packed, bool may_share) const {
    const auto& begin = packed.begin;
    UCAS_CHECK(begin.size() >= 2 && begin.front() == 0, "at least one sequence");
    UCAS_CHECK(begin.back() == static_cast<int64_t>(packed.token.size()), "sequences cover the tokens");
    UCAS_CHECK(packed.position.size() == packed.token.size() && !packed.token.empty(),
               "expected one position per token");
    for (int64_t s = 0; s < packed.sequences(); ++s) {
      const int64_t prefix = packed.prefix_of(s);
      UCAS_CHECK(prefix < 0 || (may_share && prefix < s && packed.prefix_of(prefix) < 0),
                 "a sequence goes on from an earlier whole one, where that is known");
      for (int64_t row = begin[s]; row < begin[s + 1]; ++row)
        UCAS_CHECK(packed.position[row] == packed.rows_before(s) + row - begin[s], "positions must be consecutive");
    }
    check_tokens(packed.token);
  }

  // Returns the keys in sight of these rows, all layers together. A backward pass is two forward ones.
  double note(std::span<const int32_t> position, int passes = 1) {
    double keys = 0;
    for (int32_t p : position) keys += keys_in_sight(config_, p);
    work_.operations +=
        2.0 * passes *
        (static_cast<double>(position.size()) * block_multiply_adds(config_) + keys * key_multiply_adds(config_));
    return keys;
  }
  void note_step(std::span<const int32_t> position) {
    const double E = options_.dtype == Dtype::bf16 ? 2 : 4, keys = note(position);
    work_.bytes += E * (block_multiply_adds(config_) +
                        keys * static_cast<double>(2 * config_.num_key_value_heads * config_.head_dim));
  }

  ModelConfig config_;
  ModelOptions options_;
  Weights weights_;
  Work work_;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<Head> head_;
};

}  // namespace

std::vector<NamedTensor> Model::trainable() {
  std::vector<NamedTensor> list = parameters(), added = adapter();
  list.insert(list.end(), added.begin(), added.end());
  std::erase_if(list, [](const NamedTensor& parameter) { return !parameter.tensor.requires_grad(); });
  return list;
}

std::unique_ptr<Model> make_transformer(const ModelConfig& config, Weights weights, const ModelOptions& options,
                                        Path path) {
  weights.refresh();
  return std::make_unique<Transformer>(config, std::move(weights), options, path);
}

namespace {

std::unique_ptr<Model> view_of(Model& model, Path path) {
  auto& transformer = dynamic_cast<Transformer&>(model);
  return make_transformer(transformer.config(), transformer.weights(), transformer.options(), path);
}

}  // namespace

std::unique_ptr<KvCache> make_cache(Model& model, const EngineRoom& room) {
  auto* transformer = dynamic_cast<Transformer*>(&model);
  if (transformer != nullptr) return transformer->make_cache(room);
  return model.make_cache(room.slots + room.prompt_slots, room.length, room.tokens);
}

std::unique_ptr<Model> aten_view(Model& model) { return view_of(model, Path::aten); }
std::unique_ptr<Model> emulated_view(Model& model) {
  UCAS_CHECK(suits_kernels(model.config(), model.options()), "GPU kernels need bf16 and supported widths");
  return view_of(model, Path::emulated);
}

}  // namespace ucas
