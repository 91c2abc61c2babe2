#include <cmath>

#include "kernels/lm_head.h"

namespace ucas::kernels {

// In double: the row's sums are double, and the difference z_y - LSE of nearly equal numbers is what training reads.
TokenStats token_stats(const RowStats& stats, float chosen_logit, float inverse_temperature, int64_t vocab) {
  const double lse = static_cast<double>(stats.max) + std::log(stats.sum);
  const double z = static_cast<double>(chosen_logit * inverse_temperature);  // rounded as in row_stats
  const double entropy = std::log(stats.sum) - stats.weighted / stats.sum;
  return {static_cast<float>(z - lse), static_cast<float>(entropy < 0 ? 0 : entropy),
          static_cast<float>(lse - stats.total / static_cast<double>(vocab))};
}

}  // namespace ucas::kernels
