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

}  // namespace ucas
