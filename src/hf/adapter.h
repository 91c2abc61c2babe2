// The directory of an adapter (of the PEFT library) names the checkpoint that it changes, and may lack what belongs to
// that one: config.json, the tokenizer.
#pragma once

#include <string>

namespace ucas {

inline constexpr const char* kAdapterConfig = "adapter_config.json";

bool is_adapter(const std::string& directory);
// The directory of the frozen weights: the one that adapter_config.json names, as it stands or beside it; of a
// checkpoint without an adapter the directory itself. Error(ErrorKind::path) if it is not there.
std::string base_directory(const std::string& directory);
// The directory itself if it holds `file`, else its base.
std::string directory_with(const std::string& directory, const char* file);

}  // namespace ucas
