#include "train/companion.h"

namespace ucas {

std::vector<std::unique_ptr<Companion>> make_companions(const TrainConfig& config, at::Device device) {
  std::vector<std::unique_ptr<Companion>> companions;
  for (auto make : {make_reference, make_critic, make_implicit_prm}) {
    if (auto companion = make(config, device)) companions.push_back(std::move(companion));
  }
  return companions;
}

}  // namespace ucas
