// DAPO's soft overlong punishment, part of the reward: 0 up to limit - buffer tokens, then linear to -factor at the
// limit. `length` counts the end token. The article's form is factor 1.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ucas {

inline double overlong_penalty(int64_t length, int64_t limit, int64_t buffer, double factor) {
  if (buffer <= 0) return 0;
  double excess = static_cast<double>(length - (limit - buffer));
  return std::min(-excess / static_cast<double>(buffer) * factor, 0.0);
}

}  // namespace ucas
