#include "train/companion.h"

namespace ucas {

std::vector<std::unique_ptr<Companion>> make_companions(const TrainConfig& config, at::Device device, Model& policy) {
  std::vector<std::unique_ptr<Companion>> companions;
  auto add = [&](std::unique_ptr<Companion> companion) {
    if (companion) companions.push_back(std::move(companion));
  };
  add(make_reference(config, device, &policy));
  add(make_critic(config, device));
  add(make_implicit_prm(config, device));
  return companions;
}

}  // namespace ucas
