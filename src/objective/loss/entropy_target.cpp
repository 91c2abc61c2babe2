#include "objective/loss/entropy_target.h"

#include <algorithm>
#include <cmath>

namespace ucas {

EntropyBonus entropy_bonus(const ObjectiveConfig& config, double c, double entropy) {
  if (std::isnan(entropy)) return {0, c};
  const double step = config.entropy_step;
  return {.now = entropy <= config.entropy_target ? c : 0,
          .next = entropy < config.entropy_target ? c + step : std::max(0.0, c - step)};
}

}  // namespace ucas
