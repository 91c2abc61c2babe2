// LM-head statistics and their gradient on the CPU (docs/paper.md): 256 rows by kernels::kTile columns at a time,
// so that [R, V] never exists but of a few rows, whose logits wait for the gradient. A row's logits have the same bits
// in any company (model/gemm/gemm.h); Head::logits cuts the vocabulary in the same tiles.
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
#include "kernels/likeliest.h"
#include "kernels/lm_head.h"
#include "model/backend/block.h"
#include "model/gemm/linear.h"
#include "model/tensor/autograd.h"
#include "model/tensor/parallel.h"

namespace ucas {

namespace {

constexpr int64_t kTileWork = 16384;     // simple operations on a row of a tile
constexpr int64_t kSampleGrain = 32768;  // logits that are worth a thread

// Rows of a tile's columns that begin on lines of their own in a cache: a tile's width is a power of two, by which all
// of them would share a few.
at::Tensor apart(int64_t rows, int64_t width) { return rows_of(rows, width + 16).narrow(1, 0, width); }

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

// Logits that are computed when they are asked for, all in one tile's memory.
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

// The likeliest tokens of every row, as they are found tile by tile: [R, K].
class LikelyOfRows {
 public:
  LikelyOfRows() = default;
  LikelyOfRows(int64_t rows, int64_t count) : count_(count), kept_(rows * count), found_(count > 0 ? rows : 0) {}
  bool any() const { return count_ > 0; }
  void merge(int64_t row, const float* logits, int64_t n, int64_t column) {
    found_[row] = kernels::keep_likeliest(logits, n, column, count_, kept_.data() + row * count_, found_[row]);
  }
  std::span<const kernels::LikelyToken> of(int64_t row) const { return std::span(kept_).subspan(row * count_, count_); }
  // Of a row whose log-sum-exp is `lse`.
  double mean_logprob(int64_t row, double lse, float inverse_temperature) const {
    double sum = 0;
    for (const kernels::LikelyToken& token : of(row)) sum += static_cast<double>(token.logit * inverse_temperature);
    return sum / static_cast<double>(count_) - lse;
  }

 private:
  int64_t count_ = 0;
  std::vector<kernels::LikelyToken> kept_;
  std::vector<int64_t> found_;
};

// What forward found, and backward needs.
struct NativeStats {
  at::Tensor logprob, entropy, confidence, logit, margin, lse, likely;
};

NativeStats native_stats(const at::Tensor& hidden, const at::Tensor& lm_head, const std::vector<int32_t>& target,
                         float inverse_temperature, const SavedLogits& kept, LikelyOfRows& likely) {
  int64_t rows = hidden.size(0), vocab = lm_head.size(0);
  NativeStats out;
  for (at::Tensor* t : {&out.logprob, &out.entropy, &out.confidence, &out.logit, &out.margin, &out.lse})
    *t = at::empty({rows}, hidden.options());
  if (likely.any()) out.likely = at::empty({rows}, hidden.options());
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
      if (likely.any()) likely.merge(row, tile + i * stride, width, column);
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
    const double lse = kernels::lse_of(stats[row]);
    data(out.lse)[row] = static_cast<float>(lse);
    if (likely.any()) data(out.likely)[row] = static_cast<float>(likely.mean_logprob(row, lse, inverse_temperature));
  });
  return out;
}

// Gradients of the statistics, one value a row; absent ones are 0.
struct RowGradients {
  std::vector<float> g, e, u, likely;
  RowGradients(const std::vector<at::Tensor>& gradients, int64_t rows) {
    std::vector<float>* sides[] = {&g, &e, &u, &likely};
    likely.assign(rows, 0.0f);
    for (size_t k = 0; k < gradients.size(); ++k) {
      sides[k]->assign(rows, 0.0f);
      if (!gradients[k].defined()) continue;
      at::Tensor dense = gradients[k].to(at::kFloat).contiguous();
      std::copy_n(dense.data_ptr<float>(), rows, sides[k]->begin());
    }
  }
  std::vector<int64_t> active() const {  // the others (masked, or advantage 0) add nothing and are skipped
    std::vector<int64_t> rows;
    for (size_t i = 0; i < g.size(); ++i)
      if (g[i] != 0 || e[i] != 0 || u[i] != 0 || likely[i] != 0) rows.push_back(static_cast<int64_t>(i));
    return rows;
  }
};

struct NativeSaved {
  at::Tensor hidden, entropy, lse;
  SavedLogits logits;
  LikelyOfRows likely;
  Matrix lm_head;
  std::vector<int32_t> target;
  float inverse_temperature;
  bool wants_hidden, wants_head;
};

// One row of a tile, whose logits become their gradient. The likeliest tokens add t (mean_k 1[v = v_k] - p): -p joins
// the sampled token's, and the hits are added by hand. Where t is 0 nothing but the kernel is run.
void row_gradient(const NativeSaved& saved, const RowGradients& of, int64_t row, int64_t column, int64_t width,
                  float* tile) {
  const int64_t y = saved.target[row] - column;
  const float t = of.likely[row], inverse = saved.inverse_temperature;
  const auto inverse_vocab = 1.0f / static_cast<float>(saved.lm_head.compute.size(0));
  kernels::RowGradient r{data(saved.lse)[row], data(saved.entropy)[row], of.g[row], of.e[row], of.u[row], inverse,
                         inverse_vocab};
  if (t == 0) return kernels::row_gradient(tile, width, y, r, tile);
  r.g += t;
  kernels::row_gradient(tile, width, -1, r, tile);
  if (y >= 0 && y < width) tile[y] += inverse * of.g[row];
  const std::span likeliest = saved.likely.of(row);
  for (const kernels::LikelyToken& token : likeliest) {
    const int64_t v = token.id - column;
    if (v >= 0 && v < width) tile[v] += inverse * t / static_cast<float>(likeliest.size());
  }
}

std::vector<at::Tensor> native_head_backward(const NativeSaved& saved, const std::vector<at::Tensor>& gradients) {
  RowGradients of(gradients, saved.hidden.size(0));
  std::vector<int64_t> active = of.active();
  at::Tensor d_hidden = saved.wants_hidden ? at::zeros_like(saved.hidden) : at::Tensor();
  at::Tensor d_head = saved.wants_head ? gradient_of(saved.lm_head.leaf) : at::Tensor();
  if (active.empty()) return {d_hidden, {}};
  bool all = static_cast<int64_t>(active.size()) == saved.hidden.size(0);
  at::Tensor which = at::from_blob(active.data(), {static_cast<int64_t>(active.size())}, at::kLong);
  at::Tensor hidden = all ? saved.hidden : at::index_select(saved.hidden, 0, which);
  at::Tensor d_rows = saved.wants_hidden ? (all ? d_hidden : at::zeros_like(hidden)) : at::Tensor();
  const at::ScalarType type = saved.lm_head.compute.scalar_type();
  auto visit = [&](const at::Tensor& h, int64_t first, int64_t count, const at::Tensor& w, int64_t column,
                   const at::Tensor& logits) {
    float* tile = data(logits);
    const int64_t width = logits.size(1), stride = logits.stride(0);
    each_row(count, kTileWork,
             [&](int64_t i) { row_gradient(saved, of, active[first + i], column, width, tile + i * stride); });
    // Logits of padding are 0, and so is its h: it adds nothing.
    at::Tensor d_logits = logits.to(type);
    if (saved.wants_hidden) gemm_add_input_gradient(d_logits.narrow(0, 0, count), w, d_rows.narrow(0, first, count));
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
  HeadStats compute(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature, int64_t likeliest,
                    bool wants_gradient) const override {
    NativeSaved saved{.hidden = hidden.detach().contiguous(),
                      .likely = LikelyOfRows(hidden.size(0), likeliest),
                      .lm_head = weight(),
                      .target = target,
                      .inverse_temperature = static_cast<float>(1 / temperature),
                      .wants_hidden = hidden.requires_grad(),
                      .wants_head = weight().leaf.requires_grad()};
    if (wants_gradient) saved.logits = SavedLogits(hidden.size(0), saved.lm_head.compute.size(0));
    NativeStats out;
    {
      c10::NoGradGuard no_grad;
      out = native_stats(saved.hidden, saved.lm_head.compute, target, saved.inverse_temperature, saved.logits,
                         saved.likely);
    }
    if (!wants_gradient) return {out.logprob, out.entropy, out.confidence, out.logit, out.margin, out.likely};
    saved.entropy = out.entropy.detach();
    saved.lse = out.lse;
    std::vector<at::Tensor> values = {out.logprob, out.entropy, out.confidence};
    if (likeliest > 0) values.push_back(out.likely);
    auto outputs = differentiable({hidden, weight().leaf}, values,
                                  [saved](const std::vector<at::Tensor>& g) { return native_head_backward(saved, g); });
    return {outputs[0], outputs[1], outputs[2], out.logit, out.margin, likeliest > 0 ? outputs[3] : out.likely};
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
  std::vector<std::unique_ptr<Samplers>> free_;  // as many as threads drew at once
};

}  // namespace

HeadStats Head::stats(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature,
                      int64_t likeliest) const {
  UCAS_CHECK(hidden.dim() == 2 && hidden.size(0) == static_cast<int64_t>(target.size()), "expected one target per row");
  UCAS_CHECK(temperature > 0, "statistics need a positive temperature");
  for (int32_t y : target) UCAS_CHECK(y >= 0 && y < weight_.compute.size(0), "targets lie in the vocabulary");
  bool wants = c10::GradMode::is_enabled() && (hidden.requires_grad() || weight_.leaf.requires_grad());
  const int products = wants ? 1 + (hidden.requires_grad() ? 1 : 0) + (weight_.leaf.requires_grad() ? 1 : 0) : 1;
  work_.operations += 2.0 * products * static_cast<double>(hidden.size(0) * weight_.compute.numel());
  return compute(hidden, target, temperature, std::min(likeliest, weight_.compute.size(0)), wants);
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
