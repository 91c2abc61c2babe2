#include "model/rope.h"

#include <algorithm>
#include <cmath>

namespace ucas {

RopeTable::RopeTable(int64_t head_dim, double theta) : half_(head_dim / 2) {
  for (int64_t i = 0; i < half_; ++i) {
    float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    frequency_.push_back(1.0f / static_cast<float>(std::pow(theta, static_cast<double>(exponent))));
  }
}

void RopeTable::reach(int64_t position) {
  if (position < made_) return;
  int64_t rows = std::max(position + 1, std::max<int64_t>(256, 2 * made_));
  cos_.resize(static_cast<size_t>(rows * half_));
  sin_.resize(static_cast<size_t>(rows * half_));
  for (int64_t p = made_; p < rows; ++p)
    for (int64_t i = 0; i < half_; ++i) {
      double angle = static_cast<double>(static_cast<float>(p) * frequency_[static_cast<size_t>(i)]);
      cos_[static_cast<size_t>(p * half_ + i)] = static_cast<float>(std::cos(angle));
      sin_[static_cast<size_t>(p * half_ + i)] = static_cast<float>(std::sin(angle));
    }
  made_ = rows;
}

}  // namespace ucas
