#include "objective/loss/entropy_target.h"

#include <algorithm>
#include <cmath>

namespace ucas {

EntropyBonus entropy_bonus(const ObjectiveConfig& config, double c, double entropy) {
  if (std::isnan(entropy)) return {0, c};
  return {.now = entropy <= config.entropy_target ? c : 0,
          .next = entropy < config.entropy_target ? c + kEntropyStep : std::max(0.0, c - kEntropyStep)};
}

}  // namespace ucas
