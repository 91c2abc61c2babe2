#include "base/error.h"
#include "base/str.h"
#include "train/companion.h"

namespace ucas {

std::unique_ptr<Companion> make_reference(const TrainConfig& config, at::Device /*device*/) {
  if (!config.needs().reference) return nullptr;
  throw Error("unsupported",
              str("method ", config.method_name, " needs a frozen reference policy, which train does not hold yet"));
}

}  // namespace ucas
