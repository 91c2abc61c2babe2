#include "base/process/build_info.h"

#include <string_view>

#include "base/files/file.h"
#include "base/process/python_child.h"

namespace ucas {

namespace {

// Its version.py has a line __version__ = '2.13.0+cpu'.
std::string installed_torch() {
  const std::string folder = torch_folder();
  const std::string path = folder.empty() ? "" : path_join(folder, "version.py");
  if (path.empty() || !exists(path)) return "";
  const std::string text = read_file(path, 1 << 16);
  constexpr std::string_view kBefore = "__version__ = '";
  const size_t begin = text.find(kBefore);
  if (begin == std::string::npos) return "";
  const size_t from = begin + kBefore.size();
  return text.substr(from, text.find_first_of("'\n", from) - from);
}

}  // namespace

std::string version() { return UCAS_PROJECT_VERSION; }

std::string build_type() { return UCAS_BUILD_TYPE; }

std::string torch_packages() {
  if (*UCAS_PACKAGES != '\0') return UCAS_PACKAGES;
  const std::string folder = torch_folder();
  return folder.empty() ? "" : path_join(folder, "..");
}

std::string torch_version() {
  static const std::string version = *UCAS_LIBTORCH != '\0' ? UCAS_LIBTORCH : installed_torch();
  return version;
}

}  // namespace ucas
