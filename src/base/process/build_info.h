// What this binary was built from; the build system says it.
#pragma once

#include <string>

namespace ucas {

std::string version();     // of ucas
std::string build_type();  // CMake's: "Release"
// Of the LibTorch it was built against; in the wheel, of the torch that is installed, "" where none is.
std::string torch_version();

}  // namespace ucas
