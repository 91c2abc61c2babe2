// Rotary position embedding: cosines and sines of position * frequency, rounded as transformers rounds them (f32
// frequencies, f32 GEMMs), so that long contexts agree too. Kinds of scaling: hf/rope_config.h.
#pragma once

#include <cstdint>
#include <vector>

#include "hf/model_config.h"

namespace ucas {

// What multiplies a position to give an angle, [d / 2].
std::vector<float> rope_frequencies(const ModelConfig& config);
// What cosines and sines are multiplied by: 1 but for "yarn".
float rope_attention_factor(const RopeConfig& rope);

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
  float factor_;
  std::vector<float> frequency_, cos_, sin_;
};

}  // namespace ucas
