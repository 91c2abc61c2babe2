// The signals that a method asks for (core/signal.h), of some rows of logits: a head hands over its logits as they come
// by, tile by tile, and at the end what it says of the rows itself. Keeps the tokens through which a gradient runs.
// Threads: any, each reads rows of its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/signal.h"

namespace ucas {

struct HeadStats;

class RowSignals {
 public:
  RowSignals() = default;
  RowSignals(std::span<const TokenSignal> signals, int64_t rows, int64_t vocab, float inverse_temperature,
             bool gradient);
  bool read_tokens() const;  // whether one of them wants to see logits

  // Columns [column, column + n) of a row, tile by tile from column 0.
  void read(int64_t row, const float* logits, int64_t n, int64_t column);
  // Whole rows from `first` on, z [n, V], on their device.
  void read(int64_t first, const at::Tensor& z);
  // After all of them: sets HeadStats::signals. `lse`: [R].
  void finish(HeadStats& stats, const at::Tensor& lse);

  // A signal and what a row of it has read: the tokens, from the likeliest on or by their ids; and where a gradient
  // runs through it d signal / d ln p_k of each, and their sum, for ln p_k moves with z_v by 1[v = k] - p_v.
  struct Part {
    TokenSignal signal;
    std::vector<float> largest;  // z so far
    std::vector<std::vector<LikelyToken>> tokens;
    std::vector<std::vector<double>> by = {};
    std::vector<float> sum = {};
  };
  std::vector<const Part*> differentiable() const;

 private:
  std::vector<Part> parts_;
  int64_t vocab_ = 0;
  float inverse_temperature_ = 1;
};

}  // namespace ucas
