// What this binary was built from; the build system says it.
#pragma once

#include <string>

namespace ucas {

std::string version();        // of ucas
std::string torch_version();  // of the LibTorch it was built against

}  // namespace ucas
