#include "model/rope.h"

#include <algorithm>
#include <cmath>

namespace ucas {

RopeTable::RopeTable(const ModelConfig& config) : half_(config.head_dim / 2) {
  for (int64_t i = 0; i < half_; ++i) {
    float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    frequency_.push_back(1.0f / static_cast<float>(std::pow(config.rope_theta, static_cast<double>(exponent))));
  }
}

void RopeTable::reach(int64_t position) {
  if (position < made_) return;
  int64_t rows = std::max(position + 1, std::max<int64_t>(256, 2 * made_));
  cos_.resize(rows * half_);
  sin_.resize(rows * half_);
  for (int64_t p = made_; p < rows; ++p)
    for (int64_t i = 0; i < half_; ++i) {
      double angle = static_cast<double>(static_cast<float>(p) * frequency_[i]);
      cos_[p * half_ + i] = static_cast<float>(std::cos(angle));
      sin_[p * half_ + i] = static_cast<float>(std::sin(angle));
    }
  made_ = rows;
}

}  // namespace ucas
