#include "base/process/build_info.h"

namespace ucas {

std::string version() { return UCAS_VERSION; }
std::string torch_version() { return UCAS_TORCH_VERSION; }

}  // namespace ucas
