#include "base/error.h"
#include "base/str.h"
#include "train/companion.h"

namespace ucas {

std::unique_ptr<Companion> make_critic(const TrainConfig& config, at::Device /*device*/) {
  if (!config.needs().critic) return nullptr;
  throw Error("unsupported", str("method ", config.method_name, " needs a critic, which train does not hold yet"));
}

}  // namespace ucas
