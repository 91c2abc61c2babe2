// Shared by the model's benches: shapes by name, arguments KEY=VALUE, timing in CPU seconds of the calling thread (by
// the clock where there are several, threads=N, or with clock=1), and the GEMM limit measured in the same run.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "hf/parameters.h"
#include "model/model.h"

namespace ucas {

inline bool by_the_clock = false;
inline double cpu_seconds() {
  timespec now;
  clock_gettime(by_the_clock ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of each time, the shortest first.
template <class Work>
std::vector<double> seconds_of(int times, Work work) {
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const double began = cpu_seconds();
    work();
    seconds.push_back(cpu_seconds() - began);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}
template <class Work>
double best_of(int times, Work work) {
  return seconds_of(times, work).front();
}
// What bench/table.py reads: how much of a unit was done in each of these times.
inline void print_takes(const char* what, double amount, const std::vector<double>& seconds) {
  std::printf("{\"what\": \"%s\", \"amount\": %.0f, \"seconds\": [", what, amount);
  for (size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.6f", i > 0 ? ", " : "", seconds[i]);
  std::printf("]}\n");
}

struct Shape {
  const char* name;
  int64_t D, layers, H, K, F, V;
};
// tiny; that of the embedded task; 25 M parameters; SmolLM2-135M; Qwen2.5-0.5B, 1.5B, 7B
inline constexpr Shape kShapes[] = {{"tiny", 128, 4, 4, 2, 512, 512},       {"task", 64, 2, 4, 2, 192, 58},
                                    {"m25", 512, 6, 8, 2, 1792, 8192},      {"smollm2", 576, 30, 9, 3, 1536, 49152},
                                    {"q05b", 896, 24, 14, 2, 4864, 151936}, {"q15b", 1536, 28, 12, 2, 8960, 151936},
                                    {"q7b", 3584, 28, 28, 4, 18944, 152064}};

inline ModelConfig config_of(const std::string& name) {
  for (const Shape& s : kShapes) {
    if (name != s.name) continue;
    ModelConfig c;
    c.hidden_size = s.D;
    c.num_hidden_layers = s.layers;
    c.num_attention_heads = s.H;
    c.num_key_value_heads = s.K;
    c.head_dim = s.D / s.H;
    c.intermediate_size = s.F;
    c.vocab_size = s.V;
    c.tie_word_embeddings = s.D < 2048;
    return c;
  }
  throw Error(ErrorKind::usage, str("shape=", name, ": expected tiny, task, m25, smollm2, q05b, q15b or q7b"));
}

class Arguments {
 public:
  Arguments(int argc, char** argv) : words_(argv + 1, argv + argc) {}
  std::string word(const std::string& key, const std::string& otherwise) const {
    for (const std::string& word : words_)
      if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
    return otherwise;
  }
  int64_t number(const std::string& key, int64_t otherwise) const {
    return std::stoll(word(key, std::to_string(otherwise)));
  }
  // Of everything that is measured from here on; 1 unless told.
  void set_threads() const {
    const auto threads = static_cast<int>(number("threads", 1));
    at::set_num_threads(threads);
    by_the_clock = threads > 1 || number("clock", 0) != 0;
  }
  Dtype dtype() const { return word("dtype", "f32") == "bf16" ? Dtype::bf16 : Dtype::f32; }

 private:
  std::vector<std::string> words_;
};

// Multiply-adds of one token's GEMMs.
inline double multiply_adds_per_token(const ModelConfig& c) { return block_multiply_adds(c) + head_multiply_adds(c); }

// GFLOP/s of a large f32 GEMM: the limit that shares refer to.
inline double gemm_limit() {
  at::Tensor a = at::ones({1024, 1024}), b = at::ones({1024, 1024}), out = at::empty({1024, 1024});
  at::mm_out(out, a, b);
  return 2.0 * 1024 * 1024 * 1024 / best_of(7, [&] { at::mm_out(out, a, b); }) * 1e-9;
}

}  // namespace ucas
