// A low-rank adapter on disk, in the files of the PEFT library: adapter_config.json next to adapter_model.safetensors.
// Only what ucas runs is read; the rest (other kinds of adapters, biases, starts that change the base) is refused by
// name. Dropout belongs to the training that made the adapter: nothing here has any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model_options.h"

namespace ucas {

inline constexpr const char* kPeftPrefix = "base_model.model.";  // of every tensor's name

struct PeftAdapter {
  LoraConfig lora;
  std::string base;  // directory of the frozen weights; made absolute where it is written
  // PEFT's ensure_weight_tying: a trained embedding is the LM head as well. Without it PEFT computes with the base's
  // head, also where the base has one matrix for both.
  bool ties = false;
  double dropout = 0;  // of the training that made it
};

// The names of the matrices of a block that an adapter can change: "q_proj" ..
std::vector<std::string> adaptable_modules();

std::string adapter_file(const std::string& directory);
// nullopt: the directory holds no adapter.
std::optional<PeftAdapter> find_adapter(const std::string& directory);
void write_adapter_config(const PeftAdapter& adapter, const std::string& directory);

// The directory of an adapter (of the PEFT library) names the checkpoint that it changes, and may lack what belongs to
// that one: config.json, the tokenizer.

inline constexpr const char* kAdapterConfig = "adapter_config.json";

bool is_adapter(const std::string& directory);
// The directory of the frozen weights: the one that adapter_config.json names, as it is or next to it; of a
// checkpoint without an adapter the directory itself. Error(ErrorKind::path) if it is not there.
std::string base_directory(const std::string& directory);
// The directory itself if it holds `file`, else its base.
std::string directory_with(const std::string& directory, const char* file);

}  // namespace ucas
