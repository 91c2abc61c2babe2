// The directory of an adapter (of the PEFT library) names the checkpoint that it changes, and may lack what belongs to
// that one: config.json, the tokenizer.
#pragma once

#include <string>

#include "core/model_options.h"

namespace ucas {

// Whether a linear module of a block ("model.layers.0.mlp.up_proj") gets an adapter: PEFT's rule for target_modules, a
// whole name or its end after a dot.
bool is_adapted(const LoraConfig& lora, const std::string& module);
// Whether a module ("model.norm") is trained whole beside an adapter: PEFT's rule for modules_to_save, by how its name
// ends, so that "norm" means every norm of the model.
bool is_saved_whole(const LoraConfig& lora, const std::string& module);

inline constexpr const char* kAdapterConfig = "adapter_config.json";

bool is_adapter(const std::string& directory);
// The directory of the frozen weights, absolute: the one that adapter_config.json names, as it stands or beside it; of
// a checkpoint without an adapter the directory itself. Error("path") if it is not there.
std::string base_directory(const std::string& directory);
// The directory itself if it holds `file`, else its base.
std::string directory_with(const std::string& directory, const char* file);

}  // namespace ucas
