#include "base/error.h"
#include "base/str.h"
#include "train/companion.h"

namespace ucas {

std::unique_ptr<Companion> make_implicit_prm(const TrainConfig& config, at::Device /*device*/) {
  if (!config.needs().prm) return nullptr;
  throw Error("unsupported", str("method ", config.method_name,
                                 " needs an implicit process reward model, which train does not hold yet"));
}

}  // namespace ucas
