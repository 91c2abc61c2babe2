// A low-rank adapter on disk, in the files of the PEFT library: adapter_config.json beside adapter_model.safetensors.
// Only what ucas runs is read; the rest (dropout, other kinds of adapters, biases) is refused by name.
#pragma once

#include <optional>
#include <string>

#include "core/model_options.h"

namespace ucas {

inline constexpr const char* kPeftPrefix = "base_model.model.";  // of every tensor's name

struct PeftAdapter {
  LoraConfig lora;
  std::string base;  // directory of the frozen weights, absolute
};

std::string adapter_file(const std::string& directory);
// nullopt: the directory holds no adapter.
std::optional<PeftAdapter> find_adapter(const std::string& directory);
void write_adapter_config(const PeftAdapter& adapter, const std::string& directory);
}  // namespace ucas
