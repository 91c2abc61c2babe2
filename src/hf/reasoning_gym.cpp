#include "hf/reasoning_gym.h"

#include <cstdlib>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr std::string_view kGenerated = "rg:";
constexpr const char* kFolder = "ucas/reasoning_gym";

std::string user_cache() {
  for (const auto& [name, below] : {std::pair("XDG_CACHE_HOME", ""), std::pair("HOME", ".cache")}) {
    const char* place = std::getenv(name);
    if (place != nullptr && *place != '\0') return path_join(place, below);
  }
  return "/tmp";
}

}  // namespace

bool is_generated(const std::string& name) { return name.starts_with(kGenerated); }

std::string generated_file(const std::string& name) {
  const std::string printed =
      run_python("reasoning", {"rows", name, path_join(user_cache(), kFolder)}, printable(name, 200));
  const std::string path(trim(printed.substr(printed.rfind('\n', printed.size() - 2) + 1)));
  if (!exists(path))
    throw Error(ErrorKind::python,
                str(printable(name, 200), ": its Python printed no file, but ", printable(path, 200)));
  return path;
}

bool is_generated_file(const std::string& path) { return path.find(str(kFolder, "/")) != std::string::npos; }

}  // namespace ucas
