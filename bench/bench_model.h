// Shared by the model's benches: the tiny shape (d 128, 4 layers, V 512) and that of the embedded task, timing in CPU
// seconds of the calling thread, and the GEMM limit measured in the same run.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/rng.h"
#include "model/model.h"

namespace ucas {

inline double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double best_of(int times, Work work) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    double began = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - began);
  }
  return best;
}

inline ModelConfig tiny_shape() {
  ModelConfig c;
  c.hidden_size = 128;
  c.num_hidden_layers = 4;
  c.num_attention_heads = 4;
  c.num_key_value_heads = 2;
  c.head_dim = 32;
  c.intermediate_size = 512;
  c.vocab_size = 512;
  return c;
}

// That of the embedded task.
inline ModelConfig task_shape() {
  ModelConfig c;  // its defaults, but for:
  c.intermediate_size = 192;
  c.vocab_size = 58;
  return c;
}

// Multiply-adds of one token's matrix products, the LM head included.
inline double products_per_token(const ModelConfig& c) {
  double attention = static_cast<double>((2 * c.num_attention_heads + 2 * c.num_key_value_heads) * c.head_dim);
  double layer = static_cast<double>(c.hidden_size) * (attention + 3 * static_cast<double>(c.intermediate_size));
  return static_cast<double>(c.num_hidden_layers) * layer + static_cast<double>(c.vocab_size * c.hidden_size);
}

// GFLOP/s of a large f32 product: the limit that shares refer to.
inline double gemm_limit() {
  at::Tensor a = at::ones({1024, 1024}), b = at::ones({1024, 1024}), out = at::empty({1024, 1024});
  at::mm_out(out, a, b);
  return 2.0 * 1024 * 1024 * 1024 / best_of(7, [&] { at::mm_out(out, a, b); }) * 1e-9;
}

}  // namespace ucas
