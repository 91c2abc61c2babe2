#include "base/build_info.h"

namespace ucas {

std::string version() { return UCAS_VERSION; }
std::string torch_version() { return UCAS_TORCH_VERSION; }
std::string build_type() { return UCAS_BUILD_TYPE; }

}  // namespace ucas
