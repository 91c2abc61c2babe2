// Rotary position embedding: cosines and sines of position * theta^(-2i/d), rounded as transformers rounds them (f32
// frequencies, f32 products), so that long contexts agree too.
#pragma once

#include <cstdint>
#include <vector>

#include "hf/model_config.h"

namespace ucas {

class RopeTable {
 public:
  explicit RopeTable(const ModelConfig& config);
  // Makes rows up to `position` available; rows never change once made.
  void reach(int64_t position);
  const float* cosines(int64_t position) const { return cos_.data() + position * half_; }  // [d / 2]
  const float* sines(int64_t position) const { return sin_.data() + position * half_; }
  int64_t half() const { return half_; }

 private:
  int64_t half_, made_ = 0;
  std::vector<float> frequency_, cos_, sin_;
};

}  // namespace ucas
