#include "core/model_options.h"

#include <algorithm>

namespace ucas {

void LoraConfig::fields(Fields& f) {
  f.field("rank", rank, Range{0, 4096}, "LoRA rank; 0 = no adapter, all weights are trained");
  f.field("alpha", alpha, Range{1e-6, 1e6}, "LoRA alpha: the adapter's output is scaled by alpha / rank");
  f.field("target_modules", target_modules,
          "modules with a LoRA adapter: all-linear, or some of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
          "down_proj");
  f.field("modules_to_save", modules_to_save, "modules trained in full next to the adapter, such as lm_head or norm");
}

bool names_module(const std::string& name, const std::string& module) {
  return module == name || module.ends_with("." + name);
}

bool is_adapted(const LoraConfig& lora, const std::string& module) {
  if (!lora.on()) return false;
  if (lora.all_linear()) return true;
  return std::ranges::any_of(lora.target_modules, [&](const auto& name) { return names_module(name, module); });
}

bool is_saved_whole(const LoraConfig& lora, const std::string& module) {
  return std::ranges::any_of(lora.modules_to_save, [&](const std::string& name) { return module.ends_with(name); });
}

void OptimizerConfig::fields(Fields& f) {
  f.field("lr", lr, Range{0, 1}, "peak learning rate");
  f.choice("kind", kind, "optimizer: adamw, or muon for the blocks' matrices and AdamW for all other parameters");
  f.choice(
      "moments", moments,
      "dtype of the optimizer moments, 4, 2 or 1 bytes per element; int8 applies to tensors of 4,096 or more elements");
  f.field("beta1", beta1, Range{0, 0.999999}, "AdamW: decay of the mean of gradients");
  f.field("beta2", beta2, Range{0, 0.999999}, "AdamW: decay of the mean of squared gradients");
  f.field("weight_decay", weight_decay, Range{0, 1}, "decoupled weight decay, multiplied by lr");
  f.field("grad_clip", grad_clip, Range{0, 1e9}, "maximum global gradient norm; 0 = no clipping");
  f.field("warmup_steps", warmup_steps, Range{0, 1e9}, "steps of linear learning-rate warm-up");
  f.field("warmup_from_zero", warmup_from_zero,
          "learning rate of RL's first warm-up step: 0, as in verl; false = lr / warmup_steps");
}

}  // namespace ucas
