#include "hf/adapter.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "hf/config_reader.h"
#include "hf/hub.h"

namespace ucas {

namespace {

constexpr int64_t kAdapterLimit = int64_t{1} << 20;

}  // namespace

bool is_adapter(const std::string& directory) { return exists(path_join(directory, kAdapterConfig)); }

std::string base_directory(const std::string& directory) {
  const std::string path = path_join(directory, kAdapterConfig);
  if (!exists(path)) return directory;
  const Json json = read_config_json(path, kAdapterLimit);
  const auto it = json.is_object() ? json.find("base_model_name_or_path") : json.end();
  if (json.is_object() && it != json.end() && !it->is_string() && !it->is_null()) {
    throw Error(ErrorKind::config,
                str(path, ": base_model_name_or_path = ", printable(it->dump(), 80), ": expected a string"));
  }
  const std::string named = json.is_object() && it != json.end() && it->is_string() ? it->get<std::string>() : "";
  for (const std::string& base : {named, path_join(directory, named)}) {
    if (!named.empty() && is_directory(base)) return base;
  }
  if (is_hub_name(named)) {
    const auto revision = json.find("revision");
    try {
      return checkpoint_directory(named,
                                  revision != json.end() && revision->is_string() ? revision->get<std::string>() : "");
    } catch (const Error& error) {
      throw Error(error.kind(), str(printable(path, 400), ": base_model_name_or_path: ", error.what()));
    }
  }
  throw Error(ErrorKind::path,
              str(path, ": base_model_name_or_path = \"", printable(named, 400),
                  "\": no such directory; ucas downloads nothing: put the base model there, or name its "
                  "directory in that file"));
}

std::string directory_with(const std::string& directory, const char* file) {
  if (exists(path_join(directory, file)) || !is_adapter(directory)) return directory;
  return base_directory(directory);
}

}  // namespace ucas
