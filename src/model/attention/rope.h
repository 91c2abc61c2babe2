// Rotary position embedding: cosines and sines of position * frequency, rounded as transformers rounds them (f32
// frequencies, f32 GEMMs), so that long contexts agree too. Kinds of scaling: hf/rope_config.h.
#pragma once

#include <cstdint>
#include <vector>

#include "hf/model_config.h"

namespace ucas {

// What multiplies a position to give an angle, [d / 2]. `rope`: config.rope, or config.local_rope.
std::vector<float> rope_frequencies(const ModelConfig& config, const RopeConfig& rope);
// What cosines and sines are multiplied by: 1 but for "yarn".
float rope_attention_factor(const RopeConfig& rope);

class RopeTable {
 public:
  RopeTable(const ModelConfig& config, const RopeConfig& rope);
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

// Those of a model's layers: one for all, or another one for layers that slide, or do not rotate: by angles of 0, which
// leave every number as it is.
class RopeTables {
 public:
  explicit RopeTables(const ModelConfig& config) : all_{RopeTable(config, config.rope)} {
    if (config.family->block.local_rope || !config.unrotated.empty()) all_.emplace_back(config, config.local_rope);
  }
  void reach(int64_t position) {
    for (RopeTable& table : all_) table.reach(position);
  }
  const RopeTable& of(bool local) const { return all_[local ? 1 : 0]; }
  size_t count() const { return all_.size(); }

 private:
  std::vector<RopeTable> all_;
};

}  // namespace ucas
