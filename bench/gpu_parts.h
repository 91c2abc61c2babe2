// The parts of a training step and of a decoding step by themselves, each against what the machine's copy and GEMM
// allow: bench_gpu what=parts. And which rows of a GEMM keep their bits with the number of rows: what=bits.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench_model.h"
#include "model/backend/gpu/gpu_block.h"
#include "model/gemm/gemm.h"
#include "model/limits.h"

namespace ucas {

struct PartOfStep {
  std::string name;
  double times;              // in a forward and backward pass
  double operations, bytes;  // of one; the fewest that it can do and move
  std::function<void()> work;
};

class StepParts {
 public:
  StepParts(const ModelConfig& config, at::Device device, int64_t tokens, int64_t sequence)
      : c_(config), device_(device), shape_{c_}, kernels_(kernels_of(device)), rope_(c_, device), M_(aligned(tokens)) {
    for (int64_t first = 0; first < tokens; first += sequence)
      packed_.append(std::vector<int32_t>(static_cast<size_t>(std::min(sequence, tokens - first)), 7));
    rows_ = std::make_unique<GpuRows>(packed_, device);
    rope_.reach(rows_->longest);
    block_ = std::make_unique<GpuBlock>(shape_, kernels_, rope_, rows_->position);
  }

  std::vector<PartOfStep> all() {
    std::vector<PartOfStep> parts;
    const auto L = static_cast<double>(c_.num_hidden_layers);
    add_products(parts, "qkv", shape_.N, shape_.D, L);
    add_products(parts, "out", shape_.D, shape_.query, L);
    add_products(parts, "gate_up", 2 * shape_.F, shape_.D, L);
    add_products(parts, "down", shape_.D, shape_.F, L);
    add_attention(parts, L);
    add_rows(parts, L);
    const auto tiles = static_cast<double>(c_.vocab_size) / gpu::kHeadTile;
    add_products(parts, "head_tile", gpu::kHeadTile, shape_.D, tiles);
    add_head(parts, tiles);
    return parts;
  }

 private:
  at::Tensor bf16(int64_t rows, int64_t columns) const {
    return at::randn({rows, columns}, at::TensorOptions().device(device_)).to(at::kBFloat16);
  }
  at::Tensor f32(int64_t rows, int64_t columns) const {
    return at::randn({rows, columns}, at::TensorOptions().device(device_));
  }

  // y = x W^T of N outputs and K inputs, and both of its gradients.
  void add_products(std::vector<PartOfStep>& parts, const std::string& name, int64_t N, int64_t K, double times) const {
    const at::Tensor x = bf16(M_, K), w = bf16(N, K) * 0.02, y = bf16(M_, N), d_x = bf16(M_, K);
    const at::Tensor sum = at::zeros({N, K}, at::TensorOptions().device(device_));
    const auto M = static_cast<double>(M_), n = static_cast<double>(N), k = static_cast<double>(K);
    const double operations = 2 * M * n * k, bytes = 2 * (M * n + M * k + n * k);
    parts.push_back({name + " forward", times, operations, bytes, [=] { gemm(x, w, y); }});
    parts.push_back({name + " input gradient", times, operations, bytes, [=] { gemm_input_gradient(y, w, d_x); }});
    parts.push_back({name + " weight gradient", times, operations, 2 * (M * n + M * k) + 8 * n * k,
                     [=] { gemm_weight_gradient(y, x, sum); }});
  }

  void add_attention(std::vector<PartOfStep>& parts, double times) {
    auto a = std::make_shared<Activations>();
    a->qkv = bf16(M_, shape_.N);
    block_->attend(*rows_, 0, *a);
    const at::Tensor d = bf16(M_, shape_.query);
    double keys = 0;
    for (size_t i = 0; i + 1 < rows_->begin.size(); ++i) {
      const auto length = static_cast<double>(rows_->begin[i + 1] - rows_->begin[i]);
      keys += length * (length + 1) / 2;
    }
    const double operations = 4 * keys * static_cast<double>(shape_.query);
    const double bytes = 2.0 * static_cast<double>(M_ * (shape_.N + shape_.query));
    parts.push_back({"attention forward", times, operations, bytes, [=, this] { block_->attend(*rows_, 0, *a); }});
    parts.push_back({"attention backward", times, 2.5 * operations, 3 * bytes,
                     [=, this] { block_->attend_backward(*rows_, 0, *a, d); }});
  }

  void add_rows(std::vector<PartOfStep>& parts, double times) {
    auto a = std::make_shared<Activations>();
    a->gate_up = bf16(M_, 2 * shape_.F);
    const at::Tensor x = f32(M_, shape_.D), y = bf16(M_, shape_.D), w = f32(1, shape_.D).view({-1}),
                     sum = f32(M_, shape_.D), h = bf16(M_, shape_.D), dx = f32(M_, shape_.D);
    const at::Tensor d_act = bf16(M_, shape_.F), d_gate_up = bf16(M_, 2 * shape_.F), act = bf16(M_, shape_.F);
    const auto of_width = static_cast<double>(M_ * shape_.D), of_mlp = static_cast<double>(M_ * shape_.F);
    parts.push_back({"add_norm", 2 * times, 0, 12 * of_width, [=, this] { block_->add_norm(x, y, w, sum, h); }});
    parts.push_back(
        {"norm_backward", 2 * times, 0, 16 * of_width, [=, this] { block_->norm_backward(x, w, y, dx, h); }});
    parts.push_back({"swiglu", times, 0, 6 * of_mlp, [=, this] { block_->activation(*a); }});
    parts.push_back({"swiglu_backward", times, 0, 12 * of_mlp,
                     [=, this] { block_->activation_backward(*a, d_act, d_gate_up, act); }});
  }

  void add_head(std::vector<PartOfStep>& parts, double times) const {
    const int64_t columns = gpu::kHeadTile;
    const at::Tensor logits = f32(M_, columns), of_tile = at::zeros({M_, 4}, logits.options().dtype(at::kDouble));
    const at::Tensor chosen = f32(M_, 1), ones = f32(M_, 1);
    const at::Tensor target = at::zeros({M_}, logits.options().dtype(at::kInt));
    const double bytes = 4.0 * static_cast<double>(M_ * columns);
    parts.push_back({"head_stats_of_tiles", times, 0, bytes, [=, this] {
                       gpu::HeadStatsOfTiles s{.rows = M_, .columns = columns, .stride = columns, .first_tile = 0};
                       s.tiles = 1, s.inverse_temperature = 1, s.logits = logits.data_ptr<float>();
                       s.target = target.data_ptr<int32_t>(), s.chosen = chosen.data_ptr<float>();
                       s.of_tile = static_cast<gpu::TileStats*>(of_tile.data_ptr());
                       kernels_.table.head_stats_of_tiles(kernels_.stream(), s);
                     }});
    parts.push_back({"head_gradient", times, 0, 1.5 * bytes, [=, this] {
                       gpu::HeadGradient g{.rows = M_, .columns = columns, .stride = columns, .first_column = 0};
                       g.inverse_temperature = 1, g.inverse_vocab = 1e-5f, g.target = target.data_ptr<int32_t>();
                       g.lse = g.entropy = g.g = g.e = g.u = ones.data_ptr<float>();
                       g.logits = logits.data_ptr<float>();
                       kernels_.table.head_gradient(kernels_.stream(), g);
                     }});
  }

  const ModelConfig c_;
  const at::Device device_;
  const BlockShape shape_;
  const Kernels kernels_;
  GpuRope rope_;
  const int64_t M_;
  Packed packed_;
  std::unique_ptr<GpuRows> rows_;
  std::unique_ptr<GpuBlock> block_;
};

inline void print_parts(const ModelConfig& config, at::Device device, const Limits& limits, int64_t tokens,
                        int64_t sequence) {
  const c10::NoGradGuard no_grad;
  StepParts parts(config, device, tokens, sequence);
  double all = 0, at_limit = 0;
  for (const PartOfStep& part : parts.all()) {
    const double seconds = seconds_of(device, part.work);
    const double limit = std::max(part.operations / limits.operations, part.bytes / limits.bandwidth);
    all += part.times * seconds;
    at_limit += part.times * limit;
    std::printf(
        "{\"what\": \"parts\", \"part\": \"%s\", \"ms\": %.4f, \"limit_ms\": %.4f, \"share\": %.3f, \"times\": %.1f}\n",
        part.name.c_str(), 1e3 * seconds, 1e3 * limit, limit / seconds, part.times);
  }
  std::printf("{\"what\": \"parts\", \"part\": \"all\", \"ms\": %.3f, \"limit_ms\": %.3f, \"share\": %.3f}\n",
              1e3 * all, 1e3 * at_limit, at_limit / all);
}

// Of the same rows, in GEMMs of more and of fewer: those whose bits are those of the largest.
inline void print_bits(const ModelConfig& config, at::Device device, const std::vector<int64_t>& sizes) {
  const c10::NoGradGuard no_grad;
  const BlockShape s{config};
  struct Product {
    const char* name;
    int64_t N, K;
  };
  const Product products[] = {{"qkv", s.N, s.D},
                              {"out", s.D, s.query},
                              {"gate_up", 2 * s.F, s.D},
                              {"down", s.D, s.F},
                              {"head", std::min<int64_t>(config.vocab_size, 8 * gpu::kHeadTile), s.D}};
  const int64_t most = *std::ranges::max_element(sizes);
  for (const Product& p : products) {
    const auto options = at::TensorOptions().device(device);
    const bool head = std::string_view(p.name) == "head";
    const at::Tensor x = at::randn({most, p.K}, options).to(at::kBFloat16),
                     w = (at::randn({p.N, p.K}, options) * 0.02).to(at::kBFloat16);
    const auto product = [&](int64_t rows) {
      const at::Tensor out = at::empty({rows, p.N}, options.dtype(head ? at::kFloat : at::kBFloat16));
      gemm(x.narrow(0, 0, rows), w, out);
      return out;
    };
    const at::Tensor want = product(most);
    std::string equal, other;
    for (const int64_t rows : sizes) {
      std::string& list = product(rows).equal(want.narrow(0, 0, rows)) ? equal : other;
      list += str(list.empty() ? "" : ", ", rows);
    }
    std::printf("{\"what\": \"bits\", \"product\": \"%s\", \"rows\": %ld, \"same\": [%s], \"other\": [%s]}\n", p.name,
                static_cast<long>(most), equal.c_str(), other.c_str());
  }
}

}  // namespace ucas
