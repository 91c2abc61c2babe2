// The policy: a decoder-only language model in LibTorch, for training, prefill and decode alike.
// Legend: R rows of a packed batch (tokens), D width, H query heads, K key/value heads, d head width, V vocabulary.
// One forward serves all: what differs is where keys and values come from. On the CPU every row of the result is
// bit-equal whatever else is in the batch (own kernels + GEMMs that treat each row alone), in f32
// and in bf16, so sampler and trainer agree exactly; see docs/numerics.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/model_options.h"
#include "hf/model_config.h"
#include "hf/parameters.h"
#include "model/head/head.h"
#include "model/tensor/bf16_copy.h"

namespace ucas {

class Decoder;
class Forward;
struct KvBudget;
struct Weights;

// Several sequences end to end. The row count is padded by the model; results have one row per token given here.
// A sequence may continue where an earlier one ends, which several then share: a row sees its tokens before, too.
struct Packed {
  std::vector<int32_t> token;     // [R]
  std::vector<int32_t> position;  // [R], from 0 in each sequence, or from the length of the one that it continues
  std::vector<int64_t> begin;     // [sequences + 1] offsets into token
  std::vector<int64_t> after;     // [sequences] the sequence it continues, which itself begins at 0, or -1

  // Lays one more sequence, `tokens` and then `more`, behind the others. Gives its number.
  int64_t append(std::span<const int32_t> tokens, std::span<const int32_t> more = {}, int64_t goes_on_from = -1) {
    if (begin.empty()) begin.push_back(0);
    const int64_t before = goes_on_from < 0 ? 0 : rows_of(goes_on_from);
    for (auto part : {tokens, more}) token.insert(token.end(), part.begin(), part.end());
    for (size_t i = 0; i < tokens.size() + more.size(); ++i) {
      position.push_back(static_cast<int32_t>(before + static_cast<int64_t>(i)));
    }
    begin.push_back(static_cast<int64_t>(token.size()));
    after.push_back(goes_on_from);
    return static_cast<int64_t>(after.size()) - 1;
  }
  int64_t sequences() const { return static_cast<int64_t>(begin.size()) - 1; }
  int64_t rows_of(int64_t sequence) const { return begin[sequence + 1] - begin[sequence]; }
  int64_t prefix_of(int64_t sequence) const { return after.empty() ? -1 : after[sequence]; }  // or -1
  int64_t rows_before(int64_t sequence) const { return prefix_of(sequence) < 0 ? 0 : rows_of(prefix_of(sequence)); }
};

struct NamedTensor {
  std::string name;  // HF name: "model.layers.0.self_attn.q_proj.weight"
  at::Tensor tensor;
};

// Keys and values of `slots` sequences of at most `length` tokens each.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual int64_t slots() const = 0;
  virtual int64_t length() const = 0;
  virtual void copy(int64_t from_slot, int64_t to_slot, int64_t tokens) = 0;  // a prompt's prefill, shared
  // A cache whose slots share their memory takes it as they grow and may run out of it.
  virtual bool reserve(int64_t /*slot*/, int64_t /*tokens*/) { return true; }  // false: there is no room for so many
  virtual void release(int64_t /*slot*/) {}                                    // gives back what it has
  virtual int64_t free_tokens() const { return std::numeric_limits<int64_t>::max(); }
};

// Called before and after each block's backward. ZeRO-2 uses it to move gradients in and out
// (sharding/sharded_gradients.h).
class BackwardHook {
 public:
  virtual ~BackwardHook() = default;
  virtual void before(size_t layer) = 0;
  virtual void after(size_t layer) = 0;
};

// Weights, what they are computed with, and where: a Forward and a Head, chosen when the model is made
// (model/transformer.cpp). Checks its arguments and counts the work.
class Model {
 public:
  struct Parts {
    std::unique_ptr<Forward> forward;
    std::unique_ptr<Head> head;
  };
  // `make` gets the model's own config and weights, which stay where they are.
  using Make = std::function<Parts(const ModelConfig&, const Weights&, const ModelOptions&)>;
  Model(const ModelConfig& config, Weights weights, const ModelOptions& options, const Make& make);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  const ModelConfig& config() const { return config_; }
  const ModelOptions& options() const { return options_; }
  const Weights& weights() const { return *weights_; }
  at::Device device() const;

  // Hidden states after the final norm, [R, D] f32; differentiable when gradients are on. On the CPU backward adds to
  // the parameters' .grad in place.
  at::Tensor hidden(const Packed& packed);
  // Whether hidden() takes sequences that continue others; nothing else does.
  bool shares_prefixes() const;
  Head& head() { return *head_; }
  // All that it has computed so far (hf/parameters.h).
  Work work() const;
  // The weights of a whole checkpoint, in a fixed order: f32 or (frozen in a bf16 model) bf16.
  std::vector<NamedTensor> parameters();
  // The low-rank matrices of an adapter, f32, under PEFT's names; empty: none.
  std::vector<NamedTensor> adapter();
  // The same weights without the adapter, and nothing to train; shares them with this model.
  std::unique_ptr<Model> base();
  // The same with the adapter's GEMMs added to the weights, which this model shares from then on.
  std::unique_ptr<Model> merged();
  // What an optimizer updates, and a resume restores: those with requires_grad, all f32.
  std::vector<NamedTensor> trainable();
  // The trained parameters of each block, for whose backward `watch` is called from now on, last block first; null: for
  // none. Empty where the backward is autograd's, which calls no hook.
  std::vector<std::vector<at::Tensor>> set_backward_hook(BackwardHook* watch);
  // Of trained parameters, in a bf16 model, the ones that its passes read through bf16 copies alone; the others' values
  // are read.
  std::vector<Bf16Copy> bf16_copies();
  // To be called when weights have been updated in place, before they are used.
  void refresh();

  // A cache with a slot for each response and, behind them, for each prompt that waits: those only prefill() fills, the
  // others only a copy of them, where the room says that prompts are shared.
  std::unique_ptr<KvCache> make_cache(const KvBudget& room);
  // tokens: how many all slots hold together at most; 0: each its full length. The CPU's caches are whole.
  std::unique_ptr<KvCache> make_cache(int64_t slots, int64_t length, int64_t tokens = 0);
  // Runs packed prompts and leaves their keys and values in slots[i]; hidden states of every token, [R, D].
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots);
  // One token for each of n slots: token[i] is at position[i] of slot[i]. [n, D]
  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache);
  // Decodes and samples over this cache, which must live as long (model/decoder.h).
  std::unique_ptr<Decoder> make_decoder(KvCache& cache, const SamplingConfig& sampling);

 private:
  double note(std::span<const int32_t> position, int passes = 1);
  void note_step(std::span<const int32_t> position);

  const ModelConfig config_;
  const ModelOptions options_;
  const std::unique_ptr<Weights> weights_;
  Work work_;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<Head> head_;
};

// A checkpoint, or the directory of a PEFT adapter, whose base it names. `options.lora` adds a fresh adapter.
std::unique_ptr<Model> load_model(const std::string& directory, at::Device device, const ModelOptions& options = {});
// Random weights: linear N(0, 1/fan_in), o_proj and down_proj scaled by 1/sqrt(2 layers), embeddings N(0, 0.02).
std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed, at::Device device,
                                  const ModelOptions& options = {});
// What a saved model's own files hold: its parameters; of one with an adapter the adapter, under PEFT's names.
std::vector<NamedTensor> stored_tensors(Model& model);
std::string stored_dtype(Model& model);  // of those files: the checkpoint's; adapters are float32
// config.json, generation_config.json, model.safetensors (or shards above `shard_bytes`), and tokenizer files copied
// from `like` if it is not ""; of a model with an adapter adapter_config.json and adapter_model.safetensors instead of
// the weights, as PEFT writes them. Into a directory that exists; not atomic by itself (train/state/checkpoint is).
void save_model(Model& model, const std::string& directory, const std::string& like = "",
                int64_t shard_bytes = int64_t{5} << 30);

}  // namespace ucas
