// LM-head statistics and their gradient on the CPU (docs/paper.md): 256 rows by kernels::kTile columns at a time, so
// that [R, V] never exists but of a few rows, whose logits wait for the gradient. A row's logits are bit-identical in
// any batch (model/gemm/gemm.h); Head::logits cuts the vocabulary in the same tiles.
#include "model/head/head.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/lm_head.h"
#include "model/backend/block.h"
#include "model/gemm/linear.h"
#include "model/head/row_signals.h"
#include "model/tensor/autograd.h"
#include "model/tensor/parallel.h"

namespace ucas {

namespace {

constexpr int64_t kTileWork = 16384;     // simple operations on a row of a tile
constexpr int64_t kSampleGrain = 32768;  // logits that are worth a thread

// Rows of a tile's columns that begin on lines of their own in a cache: a tile's width is a power of two, by which all
// of them would share a few.
at::Tensor apart(int64_t rows, int64_t width, at::ScalarType type = at::kFloat) {
  const int64_t line = type == at::kFloat ? 16 : 32;
  return at::empty({rows, width + line}, type).narrow(1, 0, width);
}

// Calls visit(rows of h [M, D], first row, row count, tile of W [n, D], first column, logits [M, n]); the logits are
// what logits_of(h, first row, row count, tile of W, first column) gives.
template <class Logits, class Visit>
void each_tile(const at::Tensor& hidden, const at::Tensor& lm_head, Logits logits_of, Visit visit) {
  int64_t rows = hidden.size(0), vocab = lm_head.size(0);
  for (int64_t first = 0; first < rows; first += kernels::kHeadRows) {
    int64_t count = std::min(kernels::kHeadRows, rows - first);
    at::Tensor h = aligned_rows(hidden, first, count, lm_head.scalar_type());
    for (int64_t column = 0; column < vocab; column += kernels::kTile) {
      at::Tensor w = lm_head.narrow(0, column, std::min(kernels::kTile, vocab - column));
      visit(h, first, count, w, column, logits_of(h, first, count, w, column));
    }
  }
}

// Logits that are computed on demand, all in one tile's memory.
class FreshLogits {
 public:
  FreshLogits(int64_t rows, int64_t vocab)
      : buffer_(apart(std::min(aligned(rows), kernels::kHeadRows), std::min(vocab, kernels::kTile))) {}
  at::Tensor operator()(const at::Tensor& h, int64_t, int64_t, const at::Tensor& w, int64_t) const {
    at::Tensor logits = buffer_.narrow(0, 0, h.size(0)).narrow(1, 0, w.size(0));
    gemm(h, w, logits);
    return logits;
  }

 private:
  at::Tensor buffer_;
};

// Logits of all rows, tile by tile of columns, each [P, n].
class SavedLogits {
 public:
  SavedLogits() = default;
  SavedLogits(int64_t rows, int64_t vocab) {
    if (rows > kernels::rows_kept(vocab)) return;
    for (int64_t column = 0; column < vocab; column += kernels::kTile)
      tiles_.push_back(apart(aligned(rows), std::min(kernels::kTile, vocab - column)));
  }
  bool any() const { return !tiles_.empty(); }
  at::Tensor compute(const at::Tensor& h, int64_t first, const at::Tensor& w, int64_t column) const {
    const at::Tensor logits = of(column).narrow(0, first, h.size(0));
    gemm(h, w, logits);
    return logits;
  }
  at::Tensor all(int64_t first, int64_t padded, int64_t column) const { return of(column).narrow(0, first, padded); }
  // Some rows of them, with padding.
  at::Tensor some(std::span<int64_t> rows, int64_t padded, int64_t column) const {
    at::Tensor picked = apart(padded, of(column).size(1));
    const auto count = static_cast<int64_t>(rows.size());
    picked.narrow(0, count, padded - count).zero_();
    picked.narrow(0, 0, count).copy_(at::index_select(of(column), 0, at::from_blob(rows.data(), {count}, at::kLong)));
    return picked;
  }

 private:
  const at::Tensor& of(int64_t column) const { return tiles_[static_cast<size_t>(column / kernels::kTile)]; }
  std::vector<at::Tensor> tiles_;
};

// What forward found, and backward needs.
struct NativeStats {
  at::Tensor logprob, entropy, confidence, logit, margin, lse;
};

NativeStats native_stats(const at::Tensor& hidden, const at::Tensor& lm_head, const std::vector<int32_t>& target,
                         float inverse_temperature, const SavedLogits& kept, RowSignals& signals) {
  int64_t rows = hidden.size(0), vocab = lm_head.size(0);
  NativeStats out;
  for (at::Tensor* t : {&out.logprob, &out.entropy, &out.confidence, &out.logit, &out.margin})
    *t = at::empty({rows}, hidden.options());
  out.lse = at::empty({rows}, at::kDouble);
  std::vector<kernels::RowStats> stats(rows);
  float* chosen = data(out.logit);
  auto visit = [&](const at::Tensor&, int64_t first, int64_t count, const at::Tensor&, int64_t column,
                   const at::Tensor& logits) {
    const float* tile = data(logits);
    const int64_t width = logits.size(1), stride = logits.stride(0);
    each_row(count, kTileWork, [&](int64_t i) {
      int64_t row = first + i, y = target[row] - column;
      kernels::row_stats(tile + i * stride, width, inverse_temperature, stats[row]);
      if (y >= 0 && y < width) chosen[row] = tile[i * stride + y];
      signals.read(row, tile + i * stride, width, column);
    });
  };
  if (kept.any()) {
    auto compute = [&](const at::Tensor& h, int64_t first, int64_t, const at::Tensor& w, int64_t column) {
      return kept.compute(h, first, w, column);
    };
    each_tile(hidden, lm_head, compute, visit);
  } else {
    each_tile(hidden, lm_head, FreshLogits(rows, vocab), visit);
  }
  each_row(rows, kTileWork, [&](int64_t row) {
    kernels::TokenStats token = kernels::token_stats(stats[row], chosen[row], inverse_temperature, vocab);
    data(out.logprob)[row] = token.logprob;
    data(out.entropy)[row] = token.entropy;
    data(out.confidence)[row] = token.confidence;
    data(out.margin)[row] = token.margin;
    out.lse.data_ptr<double>()[row] = kernels::lse_of(stats[row]);
  });
  return out;
}

// Gradients of the statistics, one value a row; absent ones are 0.
struct RowGradients {
  std::vector<float> g, e, u;
  std::vector<const RowSignals::Part*> parts;  // the signals through which one runs
  std::vector<std::vector<float>> signals;
  RowGradients(const std::vector<at::Tensor>& gradients, int64_t rows, const RowSignals& of)
      : parts(of.differentiable()), signals(parts.size()) {
    std::vector<std::vector<float>*> sides = {&g, &e, &u};
    for (std::vector<float>& side : signals) sides.push_back(&side);
    for (size_t k = 0; k < gradients.size(); ++k) {
      sides[k]->assign(rows, 0.0f);
      if (!gradients[k].defined()) continue;
      at::Tensor dense = gradients[k].to(at::kFloat).contiguous();
      std::copy_n(dense.data_ptr<float>(), rows, sides[k]->begin());
    }
  }
  bool any_signal(size_t row) const {
    return std::ranges::any_of(signals, [&](const std::vector<float>& side) { return side[row] != 0; });
  }
  std::vector<int64_t> active() const {  // the others (masked, or advantage 0) add nothing and are skipped
    std::vector<int64_t> rows;
    for (size_t i = 0; i < g.size(); ++i)
      if (g[i] != 0 || e[i] != 0 || u[i] != 0 || any_signal(i)) rows.push_back(static_cast<int64_t>(i));
    return rows;
  }
};

struct NativeSaved {
  at::Tensor hidden, entropy, lse;
  SavedLogits logits;
  RowSignals signals;
  Matrix lm_head;
  std::vector<int32_t> target;
  float inverse_temperature;
  bool wants_hidden, wants_head;
};

// One row of a tile, whose logits become their gradient. A signal of gradient t adds t sum_k by_k (1[v = v_k] - p): -p
// joins the sampled token's, and the hits are added by hand. Where all t are 0 nothing but the kernel is run.
void row_gradient(const NativeSaved& saved, const RowGradients& of, int64_t row, int64_t column, int64_t width,
                  float* tile) {
  const int64_t y = saved.target[row] - column;
  const float inverse = saved.inverse_temperature;
  const auto inverse_vocab = 1.0f / static_cast<float>(saved.lm_head.compute.size(0));
  kernels::RowGradient r{data(saved.lse)[row], data(saved.entropy)[row], of.g[row], of.e[row], of.u[row], inverse,
                         inverse_vocab};
  if (!of.any_signal(static_cast<size_t>(row))) return kernels::row_gradient(tile, width, y, r, tile);
  for (size_t k = 0; k < of.parts.size(); ++k) r.g += of.signals[k][row] * of.parts[k]->sum[row];
  kernels::row_gradient(tile, width, -1, r, tile);
  if (y >= 0 && y < width) tile[y] += inverse * of.g[row];
  for (size_t k = 0; k < of.parts.size(); ++k) {
    const double t = inverse * of.signals[k][row];
    for (size_t i = 0; i < of.parts[k]->by[row].size(); ++i) {
      const int64_t v = of.parts[k]->tokens[row][i].id - column;
      if (v >= 0 && v < width) tile[v] += static_cast<float>(t * of.parts[k]->by[row][i]);
    }
  }
}

std::vector<at::Tensor> native_head_backward(const NativeSaved& saved, const std::vector<at::Tensor>& gradients) {
  RowGradients of(gradients, saved.hidden.size(0), saved.signals);
  std::vector<int64_t> active = of.active();
  at::Tensor d_hidden = saved.wants_hidden ? at::zeros_like(saved.hidden) : at::Tensor();
  at::Tensor d_head = saved.wants_head ? gradient_of(saved.lm_head.parameter) : at::Tensor();
  if (active.empty()) return {d_hidden, {}};
  bool all = static_cast<int64_t>(active.size()) == saved.hidden.size(0);
  at::Tensor which = at::from_blob(active.data(), {static_cast<int64_t>(active.size())}, at::kLong);
  at::Tensor hidden = all ? saved.hidden : at::index_select(saved.hidden, 0, which);
  at::Tensor d_rows = saved.wants_hidden ? (all ? d_hidden : at::zeros_like(hidden)) : at::Tensor();
  const bool rounds = saved.lm_head.compute.scalar_type() == at::kBFloat16;
  const at::Tensor rounded = rounds ? apart(kernels::kHeadRows, kernels::kTile, at::kBFloat16) : at::Tensor();
  auto visit = [&](const at::Tensor& h, int64_t first, int64_t count, const at::Tensor& w, int64_t column,
                   const at::Tensor& logits) {
    float* tile = data(logits);
    const int64_t width = logits.size(1), stride = logits.stride(0);
    const at::Tensor d_logits = rounds ? rounded.narrow(0, 0, h.size(0)).narrow(1, 0, width) : logits;
    // Logits of padding are 0, and so is its h: it adds nothing.
    each_row(h.size(0), kTileWork, [&](int64_t i) {
      if (i < count) row_gradient(saved, of, active[first + i], column, width, tile + i * stride);
      if (rounds) kernels::table().narrow(tile + i * stride, width, data<Bf16>(d_logits) + i * d_logits.stride(0));
    });
    if (saved.wants_hidden)
      gemm_input_gradient(d_logits.narrow(0, 0, count), w, d_rows.narrow(0, first, count), Into::sum);
    if (saved.wants_head) gemm_weight_gradient(d_logits, h, d_head.narrow(0, column, width));
  };
  if (saved.logits.any()) {
    auto kept = [&](const at::Tensor& h, int64_t first, int64_t count, const at::Tensor&, int64_t column) {
      return all ? saved.logits.all(first, h.size(0), column)
                 : saved.logits.some(std::span(active).subspan(first, count), h.size(0), column);
    };
    each_tile(hidden, saved.lm_head.compute, kept, visit);
  } else {
    each_tile(hidden, saved.lm_head.compute, FreshLogits(hidden.size(0), saved.lm_head.compute.size(0)), visit);
  }
  if (saved.wants_hidden && !all) d_hidden.index_copy_(0, which, d_rows);
  return {d_hidden, {}};
}

class NativeHead final : public Head {
 public:
  using Head::Head;
  std::unique_ptr<Head> over(Matrix weight) const override { return make_native_head(std::move(weight)); }
  int64_t rows_at_once() const override { return std::max<int64_t>(kernels::rows_kept(weight().compute.size(0)), 1); }

 protected:
  HeadStats compute(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature,
                    std::span<const TokenSignal> signals, bool wants_gradient) const override {
    const auto inverse_temperature = static_cast<float>(1 / temperature);
    const int64_t vocab = weight().compute.size(0);
    NativeSaved saved{.hidden = hidden.detach().contiguous(),
                      .signals = RowSignals(signals, hidden.size(0), vocab, inverse_temperature, wants_gradient),
                      .lm_head = weight(),
                      .target = target,
                      .inverse_temperature = inverse_temperature,
                      .wants_hidden = hidden.requires_grad(),
                      .wants_head = weight().parameter.requires_grad()};
    if (wants_gradient) saved.logits = SavedLogits(hidden.size(0), vocab);
    NativeStats out;
    {
      c10::NoGradGuard no_grad;
      out = native_stats(saved.hidden, saved.lm_head.compute, target, saved.inverse_temperature, saved.logits,
                         saved.signals);
    }
    HeadStats stats{out.logprob, out.entropy, out.confidence, out.logit, out.margin, {}};
    saved.signals.finish(stats, out.lse);
    if (!wants_gradient) return stats;
    saved.entropy = out.entropy.detach();
    saved.lse = out.lse.to(at::kFloat);
    return with_gradient(
        std::move(stats), signals, {hidden, weight().parameter},
        [saved = std::move(saved)](const std::vector<at::Tensor>& g) { return native_head_backward(saved, g); });
  }
};

at::Tensor asked_rows(const at::Tensor& logits, std::vector<int64_t>& rows) {
  at::Tensor which = at::from_blob(rows.data(), {static_cast<int64_t>(rows.size())}, at::kLong);
  return at::index_select(logits, 0, which.to(logits.device())).cpu();
}

// Rows of logits taken to the host, shared out among the threads.
class HostSampler final : public TokenSampler {
 public:
  explicit HostSampler(const SamplingConfig& config) : sampled_(config), greedy_(config) { greedy_.temperature = 0; }

  std::vector<SampledToken> sample(const at::Tensor& logits, std::span<const SampleRequest> asks) override {
    std::vector<int64_t> rows;
    for (const SampleRequest& ask : asks) rows.push_back(ask.row);
    const bool here = logits.is_cpu();
    const at::Tensor host = here ? logits.contiguous() : asked_rows(logits, rows);
    const int64_t vocab = host.size(1);
    std::vector<SampledToken> sampled(asks.size());
    const auto count = static_cast<int64_t>(asks.size());
    parallel_for(count, std::max<int64_t>(kSampleGrain / vocab, 1), [&](int64_t begin, int64_t end) {
      std::unique_ptr<Samplers> own = take();
      for (int64_t i = begin; i < end; ++i) {
        Sampler& sampler = asks[i].greedy ? own->greedy : own->sampled;
        const std::span row(host.const_data_ptr<float>() + (here ? rows[i] : i) * vocab, static_cast<size_t>(vocab));
        sampled[i] = sampler.sample(row, uniform(asks[i].key));
      }
      std::lock_guard lock(mutex_);
      free_.push_back(std::move(own));
    });
    return sampled;
  }

 private:
  struct Samplers {
    Sampler sampled, greedy;
  };

  std::unique_ptr<Samplers> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Samplers>(Samplers{Sampler(sampled_), Sampler(greedy_)});
    std::unique_ptr<Samplers> one = std::move(free_.back());
    free_.pop_back();
    return one;
  }

  SamplingConfig sampled_, greedy_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Samplers>> free_;  // as many as threads sampled at once
};

}  // namespace

HeadStats Head::with_gradient(HeadStats stats, std::span<const TokenSignal> signals,
                              const std::vector<at::Tensor>& inputs, Backward backward) {
  std::vector<at::Tensor*> outputs = {&stats.logprob, &stats.entropy, &stats.confidence};
  for (size_t k = 0; k < signals.size(); ++k)
    if (signals[k].derivatives) outputs.push_back(&stats.signals[k]);
  std::vector<at::Tensor> values;
  for (const at::Tensor* output : outputs) values.push_back(*output);
  values = differentiable(inputs, values, std::move(backward));
  for (size_t k = 0; k < outputs.size(); ++k) *outputs[k] = values[k];
  return stats;
}

HeadStats Head::stats(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature,
                      std::span<const TokenSignal> signals) const {
  UCAS_CHECK(hidden.dim() == 2 && hidden.size(0) == static_cast<int64_t>(target.size()), "expected one target per row");
  UCAS_CHECK(temperature > 0, "statistics need a positive temperature");
  for (int32_t y : target) UCAS_CHECK(y >= 0 && y < weight_.compute.size(0), "targets are in the vocabulary");
  bool wants = c10::GradMode::is_enabled() && (hidden.requires_grad() || weight_.parameter.requires_grad());
  const int gemms = wants ? 1 + (hidden.requires_grad() ? 1 : 0) + (weight_.parameter.requires_grad() ? 1 : 0) : 1;
  work_.operations += 2.0 * gemms * static_cast<double>(hidden.size(0) * weight_.compute.numel());
  return compute(hidden, target, temperature, signals, wants);
}

void Head::note_logits(int64_t rows) const {
  const auto numbers = static_cast<double>(weight_.compute.numel());
  work_.operations += 2 * static_cast<double>(rows) * numbers;
  work_.bytes += numbers * static_cast<double>(weight_.compute.element_size());
}

at::Tensor Head::logits(const at::Tensor& hidden) const {
  c10::NoGradGuard no_grad;
  const at::Tensor& weight = weight_.compute;
  int64_t rows = hidden.size(0), vocab = weight.size(0);
  const at::ScalarType type = weight.scalar_type();
  note_logits(rows);
  at::Tensor h = padded_rows(hidden.detach(), 0, rows, gemm_rows(rows, type), type);
  at::Tensor logits = at::empty({h.size(0), vocab}, hidden.options());
  for (int64_t column = 0; column < vocab; column += kernels::kTile) {
    int64_t width = std::min(kernels::kTile, vocab - column);
    gemm(h, weight.narrow(0, column, width), logits.narrow(1, column, width));
  }
  return logits.narrow(0, 0, rows);
}

std::unique_ptr<TokenSampler> Head::make_sampler(const SamplingConfig& config) const {
  return std::make_unique<HostSampler>(config);
}

std::unique_ptr<Head> make_native_head(Matrix weight) { return std::make_unique<NativeHead>(std::move(weight)); }

}  // namespace ucas
