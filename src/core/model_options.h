// How a model is held: in which numbers it computes, what of it is trained, what its backward keeps.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

// f32: everything. bf16: GEMMs and what is kept of rows (activations, keys and values); parameters that are trained
// have f32 masters, and every sum (of GEMMs, gradients, moments, the LM head's statistics) is f32.
// automatic: by the device, before anything else reads it (decided).
enum class Dtype { f32, bf16, automatic };
constexpr std::array<const char*, 3> names(Dtype) { return {"f32", "bf16", "auto"}; }
constexpr const char* kDtypeHelp =
    "dtype of matmuls, activations and KV cache; auto = bf16 on a CUDA device, f32 on a CPU";
// The GPU's kernels are for bf16; the CPU's f32 is what a bf16 GPU is compared with.
inline Dtype decided(Dtype dtype, const std::string& device) {
  if (dtype != Dtype::automatic) return dtype;
  return device.starts_with("cuda") ? Dtype::bf16 : Dtype::f32;
}

// Activations of each block that are saved for backward: all of them; its input and attention's output; its input
// alone. The rest is recomputed, bit-identical.
enum class Recompute { none, keep_attention, block };
constexpr std::array<const char*, 3> names(Recompute) { return {"none", "keep_attention", "block"}; }

// Low-rank adapters: y = x W^T + (alpha / rank) x A^T B^T, A [rank, in], B [out, rank], W frozen. Names are PEFT's.
struct LoraConfig {
  int64_t rank = 0;  // 0: no adapter, all parameters are trained
  double alpha = 32;
  std::vector<std::string> target_modules = {"all-linear"};
  std::vector<std::string> modules_to_save;  // trained whole with the adapter, such as lm_head or norm

  bool on() const { return rank > 0; }
  bool all_linear() const { return target_modules == std::vector<std::string>{"all-linear"}; }
  double scale() const { return alpha / static_cast<double>(rank); }
  bool operator==(const LoraConfig&) const = default;
  void fields(Fields& f);
};

// PEFT's rule for target_modules: a whole name ("model.layers.0.mlp.up_proj"), or its end after a dot ("up_proj").
bool names_module(const std::string& name, const std::string& module);
// Whether a linear module of a block gets an adapter.
bool is_adapted(const LoraConfig& lora, const std::string& module);
// Whether a module ("model.norm") is trained whole with an adapter: PEFT's rule for modules_to_save, by how its name
// ends, so that "norm" means every norm of the model.
bool is_saved_whole(const LoraConfig& lora, const std::string& module);

enum class Trained { all, adapter, none };

struct ModelOptions {
  Dtype dtype = Dtype::f32;
  Trained trained = Trained::all;
  Recompute recompute = Recompute::none;
  LoraConfig lora;    // of a fresh adapter; a directory that holds one brings its own
  uint64_t seed = 0;  // of a fresh adapter's A
  std::string base;   // directory of an adapter's frozen weights; filled in by load_model
};

// For a model that is only read.
inline ModelOptions inference(Dtype dtype) { return {.dtype = dtype, .trained = Trained::none}; }

// Options of an optimizer and its learning-rate schedule: of the policy, of SFT, and of the models that a method trains
// next to the policy.

enum class OptimizerKind {
  adamw,
  muon
};  // muon: of the blocks' matrices; all else has AdamW (train/optimizer/update_rules.h)
enum class MomentType {
  f32,
  bf16,
  int8
};  // how running means of gradients are kept between updates (train/optimizer/moments.h)
enum class Decay { all, matrices };  // which parameters weight decay pulls on
enum class Schedule { constant, cosine };

constexpr std::array<const char*, 2> names(OptimizerKind) { return {"adamw", "muon"}; }
constexpr std::array<const char*, 3> names(MomentType) { return {"f32", "bf16", "int8"}; }

// What each of several ranks keeps a share of: the optimizer's moments (ZeRO-1), or their parameters' gradients, too
// (ZeRO-2).
enum class Shard { moments, gradients };
constexpr std::array<const char*, 2> names(Shard) { return {"moments", "gradients"}; }

// Defaults: verl's actor. What has no option here is a constant of RL; SFT has a schedule of its own.
struct OptimizerConfig {
  double lr = 1e-6;
  OptimizerKind kind = OptimizerKind::adamw;
  MomentType moments = MomentType::f32;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.95;  // Muon's
  double weight_decay = 0.01;
  Decay decay = Decay::all;
  double grad_clip = 1.0;  // largest global L2 norm of the gradient; 0 = no clipping
  int64_t warmup_steps = 0;
  bool warmup_from_zero = true;  // RL: the first step of a warm-up changes nothing, as verl's
  Schedule schedule = Schedule::constant;
  double min_lr_ratio = 0.0;  // where cosine ends, as a share of lr

  void fields(Fields& f);
};

}  // namespace ucas
