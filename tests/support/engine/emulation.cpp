#include "support/engine/emulation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "model/backend/gpu/gpu_block.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/transformer.h"
#include "support/gpu_emulation.h"

namespace ucas {

namespace {

using Heads = Emulation::Heads;

// Attention in plain operations, sequence by sequence. The last row sees the last key.
at::Tensor plain_attention(const BlockShape& s, const Heads& heads, int64_t window) {
  const auto of = [&](const at::Tensor& x) {
    return x.to(at::kFloat).transpose(0, 1).repeat_interleave(s.H / x.size(1), 0).unsqueeze(0);
  };
  const int64_t T = heads[0].size(0), before = heads[1].size(0) - T;
  std::optional<at::Tensor> mask;
  if (window > 0 || before > 0) {
    mask = at::ones({T, before + T}, at::kBool).tril(before);
    if (window > 0) mask = mask->logical_and(at::ones_like(*mask).triu(before + 1 - window));
  }
  const at::Tensor o =
      at::scaled_dot_product_attention(of(heads[0]), of(heads[1]), of(heads[2]), mask, 0.0, /*is_causal=*/!mask);
  return o.squeeze(0).transpose(0, 1).reshape({T, s.query});
}

// Of each sequence its rows and the keys that it sees.
template <class Visit>
void each_sequence(const GpuRows& rows, const Heads& heads, Visit visit) {
  for (size_t i = 0; i + 1 < rows.begin.size(); ++i) {
    const int64_t first = rows.begin[i], count = rows.begin[i + 1] - first;
    const int64_t key = rows.begin_keys[i], keys = rows.begin_keys[i + 1] - key;
    visit(first, count,
          Heads{heads[0].narrow(0, first, count), heads[1].narrow(0, key, keys), heads[2].narrow(0, key, keys)});
  }
}

at::Tensor plain_attention_of_rows(const BlockShape& s, const GpuRows& rows, int64_t window, const Heads& heads) {
  std::vector<at::Tensor> parts;
  each_sequence(rows, heads, [&](int64_t, int64_t, const Heads& of) {
    parts.push_back(plain_attention(s, of, window).to(at::kBFloat16));
  });
  return at::cat(parts);
}

Heads plain_attention_backward(const BlockShape& s, const GpuRows& rows, int64_t window, const Heads& heads,
                               const at::Tensor& d_attended) {
  std::array<std::vector<at::Tensor>, 3> parts;
  each_sequence(rows, heads, [&](int64_t first, int64_t count, Heads leaves) {
    const at::AutoGradMode with_gradients(true);
    for (at::Tensor& leaf : leaves) leaf = leaf.detach().to(at::kFloat).requires_grad_(true);
    plain_attention(s, leaves, window).backward(d_attended.narrow(0, first, count).to(at::kFloat));
    for (size_t i = 0; i < 3; ++i) parts[i].push_back(leaves[i].grad().to(at::kBFloat16));
  });
  return {at::cat(parts[0]), at::cat(parts[1]), at::cat(parts[2])};
}

const bool kRegistered = [] {
  emulation() = {&gpu::host(), plain_attention_of_rows, plain_attention_backward};
  return true;
}();

std::unique_ptr<Model> view_of(Model& model, const Model::Make& make) {
  Weights weights = model.weights();
  weights.refresh();
  return std::make_unique<Model>(model.config(), std::move(weights), model.options(), make);
}

}  // namespace

std::unique_ptr<Model> emulated_view(Model& model) {
  UCAS_CHECK(kRegistered && suits_kernels(model.config(), model.options()),
             "GPU kernels need bf16 and supported widths");
  return view_of(model, [](const ModelConfig& config, const Weights& weights, const ModelOptions& options) {
    return Model::Parts{make_gpu_forward(config, weights, options), make_gpu_head(weights.head)};
  });
}

std::unique_ptr<Model> aten_view(Model& model) {
  return view_of(model, [](const ModelConfig& config, const Weights& weights, const ModelOptions& options) {
    return Model::Parts{make_aten_forward(config, weights, options), make_aten_head(weights.head)};
  });
}

}  // namespace ucas
