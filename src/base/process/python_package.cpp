#include "base/process/python_package.h"

#include <dlfcn.h>

#include <cctype>
#include <cstdlib>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

std::string own_folder() {
  Dl_info info{};
  std::string self;
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) != 0 && info.dli_fname != nullptr)
    self = info.dli_fname;
  const size_t slash = self.rfind('/');
  return slash == std::string::npos ? "." : self.substr(0, slash);
}

std::string python_package(const std::string& name) {
  std::string variable = "UCAS_";
  for (char c : name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  variable += "_DIR";
  if (const char* named = std::getenv(variable.c_str()); named != nullptr && *named != '\0') {
    if (!is_directory(named)) {
      throw Error(ErrorKind::path,
                  str(variable, "=", printable(named, 400), ": no folder is there; expected .../site-packages/", name,
                      ", or no such variable"));
    }
    return named;
  }
  const std::string beside = path_join(path_join(own_folder(), ".."), name);
  return is_directory(beside) ? beside : "";
}

}  // namespace ucas
