// What a model has been asked to compute, to be held against what the machine can do (model/limits.h,
// plan/step_time.h). Counted from shapes, once for every row that passes: what is computed again to save memory is no
// work.
#pragma once

#include "hf/model_config.h"
#include "hf/parameters.h"

namespace ucas {

struct Work {
  double operations = 0;  // of GEMMs and attention; a multiply-add is two
  double bytes = 0;       // of weights, keys and values that decoding has read, each once a step
};

// Multiply-adds of one token: of all blocks' GEMMs, of the LM head, and of attention.
inline double block_multiply_adds(const ModelConfig& c) {
  double of_block = 0;
  visit_block(c, [&](const BlockParameter& p) { of_block += static_cast<double>(p.rows * p.columns); });
  return static_cast<double>(c.num_hidden_layers) * of_block;
}
inline double head_multiply_adds(const ModelConfig& c) { return static_cast<double>(c.vocab_size * c.hidden_size); }
// Of one layer for each key in sight.
inline double key_multiply_adds(const ModelConfig& c) {
  return static_cast<double>(2 * c.num_attention_heads * c.head_dim);
}
// Keys in sight of a token at this position, of all layers together.
inline double keys_in_sight(const ModelConfig& c, int64_t position) {
  if (c.windows.empty()) return static_cast<double>(c.num_hidden_layers * (position + 1));
  double keys = 0;
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const int64_t window = c.window(static_cast<size_t>(layer));
    keys += static_cast<double>(window == 0 || position < window ? position + 1 : window);
  }
  return keys;
}

}  // namespace ucas
