#include "model/model.h"

#include <c10/core/GradMode.h>

#include "base/error.h"
#include "base/str.h"
#include "model/decoder.h"
#include "model/transformer.h"

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

void check_tokens(const ModelConfig& config, std::span<const int32_t> token) {
  for (int32_t id : token)
    if (id < 0 || id >= config.vocab_size)
      throw Error(ErrorKind::tokenizer, str("token id ", id, " is outside the model's vocabulary of ",
                                            config.vocab_size, "; do tokenizer and checkpoint belong together?"));
}

void check_packed(const ModelConfig& config, const Packed& packed, bool may_share) {
  const auto& begin = packed.begin;
  UCAS_CHECK(begin.size() >= 2 && begin.front() == 0, "at least one sequence");
  UCAS_CHECK(begin.back() == static_cast<int64_t>(packed.token.size()), "sequences cover the tokens");
  UCAS_CHECK(packed.position.size() == packed.token.size() && !packed.token.empty(), "expected one position per token");
  for (int64_t s = 0; s < packed.sequences(); ++s) {
    const int64_t prefix = packed.prefix_of(s);
    UCAS_CHECK(prefix < 0 || (may_share && prefix < s && packed.prefix_of(prefix) < 0),
               "a sequence continues an earlier whole one, where that is known");
    for (int64_t row = begin[s]; row < begin[s + 1]; ++row)
      UCAS_CHECK(packed.position[row] == packed.rows_before(s) + row - begin[s], "positions must be consecutive");
  }
  check_tokens(config, packed.token);
}

}  // namespace

Model::Model(const ModelConfig& config, Weights weights, const ModelOptions& options, const Make& make)
    : config_(config), options_(options), weights_(std::make_unique<Weights>(std::move(weights))) {
  Parts parts = make(config_, *weights_, options_);
  forward_ = std::move(parts.forward);
  head_ = std::move(parts.head);
}

Model::~Model() = default;

at::Device Model::device() const { return weights_->norm.device(); }
bool Model::shares_prefixes() const { return forward_->shares_prefixes(); }
std::vector<NamedTensor> Model::parameters() { return weights_->parameters; }
std::vector<NamedTensor> Model::adapter() { return weights_->adapter; }
void Model::refresh() { weights_->refresh(); }

Work Model::work() const {
  const Work& head = head_->work();
  return {work_.operations + head.operations, work_.bytes + head.bytes};
}

std::vector<NamedTensor> Model::trainable() {
  std::vector<NamedTensor> list = parameters(), added = adapter();
  list.insert(list.end(), added.begin(), added.end());
  std::erase_if(list, [](const NamedTensor& parameter) { return !parameter.tensor.requires_grad(); });
  return list;
}

std::vector<Bf16Copy> Model::bf16_copies() {
  if (options_.dtype != Dtype::bf16 || !forward_->backward_by_hand()) return {};
  return trained_copies(*weights_);
}

std::vector<std::vector<at::Tensor>> Model::set_backward_hook(BackwardHook* watch) {
  std::vector<std::vector<at::Tensor>> layers;
  if (!forward_->backward_by_hand()) return layers;
  weights_->watch = watch;
  for (const Layer& layer : weights_->layers) layers.push_back(trained_parameters(layer));
  return layers;
}

std::unique_ptr<Model> Model::base() {
  ModelOptions options = options_;
  options.lora = {};
  options.trained = Trained::none;
  return make_transformer(config_, without_adapter(*weights_), options);
}

std::unique_ptr<Model> Model::merged() {
  merge_adapter(*weights_);
  return base();
}

at::Tensor Model::hidden(const Packed& packed) {
  check_packed(config_, packed, shares_prefixes());
  at::Tensor hidden = forward_->hidden(packed);
  note(packed.position, hidden.requires_grad() ? 3 : 1);
  return hidden;
}

std::unique_ptr<KvCache> Model::make_cache(const KvBudget& room) { return forward_->make_cache(room); }
std::unique_ptr<KvCache> Model::make_cache(int64_t slots, int64_t length, int64_t tokens) {
  return make_cache(KvBudget{.slots = slots, .length = length, .tokens = tokens});
}

at::Tensor Model::prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) {
  check_packed(config_, packed, false);
  UCAS_CHECK(slots.size() + 1 == packed.begin.size(), "expected one cache slot per sequence");
  for (size_t s = 0; s < slots.size(); ++s)
    UCAS_CHECK(slots[s] >= 0 && slots[s] < cache.slots() && packed.begin[s + 1] - packed.begin[s] <= cache.length(),
               "prefilling inside the cache");
  c10::NoGradGuard no_grad;
  note(packed.position);
  return forward_->prefill(packed, cache, slots);
}

at::Tensor Model::decode(std::span<const int32_t> token, std::span<const int32_t> position,
                         std::span<const int64_t> slot, KvCache& cache) {
  UCAS_CHECK(token.size() == position.size() && token.size() == slot.size() && !token.empty(),
             "a token, a position and a slot for each row");
  check_tokens(config_, token);
  for (size_t i = 0; i < token.size(); ++i)
    UCAS_CHECK(position[i] >= 0 && position[i] < cache.length() && slot[i] >= 0 && slot[i] < cache.slots(),
               "decoding inside the cache");
  c10::NoGradGuard no_grad;
  note_step(position);
  return forward_->decode(token, position, slot, cache);
}

std::unique_ptr<Decoder> Model::make_decoder(KvCache& cache, const SamplingConfig& sampling) {
  auto own = forward_->make_decoder(*head_, cache, sampling);
  if (!own) return make_stepwise_decoder(*this, cache, sampling);
  return std::make_unique<CountedDecoder>(std::move(own), [this](std::span<const int32_t> position) {
    note_step(position);
    head_->note_logits(static_cast<int64_t>(position.size()));
  });
}

// Returns the keys in sight of these rows, all layers together. A backward pass is two forward ones.
double Model::note(std::span<const int32_t> position, int passes) {
  double keys = 0;
  for (int32_t p : position) keys += keys_in_sight(config_, p);
  work_.operations +=
      2.0 * passes *
      (static_cast<double>(position.size()) * block_multiply_adds(config_) + keys * key_multiply_adds(config_));
  return keys;
}

void Model::note_step(std::span<const int32_t> position) {
  const double E = options_.dtype == Dtype::bf16 ? 2 : 4, keys = note(position);
  work_.bytes += E * (block_multiply_adds(config_) +
                      keys * static_cast<double>(2 * config_.num_key_value_heads * config_.head_dim));
}

}  // namespace ucas
