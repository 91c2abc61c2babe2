// LM-head statistics and their gradient (algorithms: Sec. 17): 256 rows by kernels::kTile columns at a time, so that
// [R, V] never exists. On the CPU logits are made 16 rows at least at a time, which keeps every row bit-equal for any
// number of rows; head_logits cuts the vocabulary in the same tiles.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/lm_head.h"
#include "model/autograd.h"
#include "model/head_generic.h"
#include "model/model.h"

namespace ucas {

namespace {

constexpr int64_t kChunk = 256;  // rows; 97 % of the GEMM limit, see bench/
constexpr int64_t kAlign = 16;   // rows of a GEMM are bit-equal for every row count that is a multiple of this

int64_t round_up(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

bool native(const at::Tensor& hidden) { return hidden.device().is_cpu() && hidden.scalar_type() == at::kFloat; }

// Rows [first, first + count) of x, contiguous, padded with zero rows to a multiple of kAlign.
at::Tensor aligned_rows(const at::Tensor& x, int64_t first, int64_t count) {
  at::Tensor rows = x.narrow(0, first, count);
  if (count % kAlign == 0) return rows.contiguous();
  at::Tensor padded = at::zeros({round_up(count), x.size(1)}, x.options());
  padded.narrow(0, 0, count).copy_(rows);
  return padded;
}

// Calls visit(rows of h [M, D], first row, row count, tile of W [n, D], first column, logits [M, n]).
template <class Visit>
void each_tile(const at::Tensor& hidden, const at::Tensor& lm_head, Visit visit) {
  int64_t rows = hidden.size(0), vocab = lm_head.size(0);
  at::Tensor buffer = at::empty({std::min(round_up(rows), kChunk) * std::min(vocab, kernels::kTile)}, hidden.options());
  for (int64_t first = 0; first < rows; first += kChunk) {
    int64_t count = std::min(kChunk, rows - first);
    at::Tensor h = aligned_rows(hidden, first, count);
    for (int64_t column = 0; column < vocab; column += kernels::kTile) {
      int64_t width = std::min(kernels::kTile, vocab - column);
      at::Tensor w = lm_head.narrow(0, column, width);
      at::Tensor logits = buffer.narrow(0, 0, h.size(0) * width).view({h.size(0), width});
      at::mm_out(logits, h, w.t());
      visit(h, first, count, w, column, logits);
    }
  }
}

template <class PerRow>
void each_row(int64_t count, PerRow per_row) {
  at::parallel_for(0, count, 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) per_row(row);
  });
}

struct Forward {
  at::Tensor logprob, entropy, confidence, logit, lse;
};

Forward forward(const at::Tensor& hidden, const at::Tensor& lm_head, const std::vector<int32_t>& target,
                float inverse_temperature) {
  int64_t rows = hidden.size(0), vocab = lm_head.size(0);
  Forward out;
  for (at::Tensor* t : {&out.logprob, &out.entropy, &out.confidence, &out.logit, &out.lse})
    *t = at::empty({rows}, hidden.options());
  std::vector<kernels::RowStats> stats(static_cast<size_t>(rows));
  float* chosen = out.logit.data_ptr<float>();
  each_tile(hidden, lm_head,
            [&](const at::Tensor&, int64_t first, int64_t count, const at::Tensor&, int64_t column,
                const at::Tensor& logits) {
              const float* tile = logits.data_ptr<float>();
              int64_t width = logits.size(1);
              each_row(count, [&](int64_t i) {
                auto row = static_cast<size_t>(first + i);
                kernels::row_stats(tile + i * width, width, inverse_temperature, stats[row]);
                int64_t y = target[row] - column;
                if (y >= 0 && y < width) chosen[row] = tile[i * width + y];
              });
            });
  each_row(rows, [&](int64_t row) {
    const kernels::RowStats& s = stats[static_cast<size_t>(row)];
    kernels::TokenStats token = kernels::token_stats(s, chosen[row], inverse_temperature, vocab);
    out.logprob.data_ptr<float>()[row] = token.logprob;
    out.entropy.data_ptr<float>()[row] = token.entropy;
    out.confidence.data_ptr<float>()[row] = token.confidence;
    out.lse.data_ptr<float>()[row] = static_cast<float>(kernels::lse_of(s));
  });
  return out;
}

// Gradients of the three statistics, one value a row; absent ones are 0.
struct RowGradients {
  std::vector<float> g, e, u;
  RowGradients(const std::vector<at::Tensor>& gradients, int64_t rows) {
    std::vector<float>* sides[] = {&g, &e, &u};
    for (size_t k = 0; k < 3; ++k) {
      sides[k]->assign(static_cast<size_t>(rows), 0.0f);
      if (!gradients[k].defined()) continue;
      at::Tensor dense = gradients[k].to(at::kFloat).contiguous();
      std::copy_n(dense.data_ptr<float>(), rows, sides[k]->begin());
    }
  }
  std::vector<int64_t> active() const {  // the others (masked, or advantage 0) add nothing and are skipped
    std::vector<int64_t> rows;
    for (size_t i = 0; i < g.size(); ++i)
      if (g[i] != 0 || e[i] != 0 || u[i] != 0) rows.push_back(static_cast<int64_t>(i));
    return rows;
  }
};

struct Saved {
  at::Tensor hidden, lm_head, entropy, lse;
  std::vector<int32_t> target;
  float inverse_temperature;
  bool wants_hidden, wants_head;
};

std::vector<at::Tensor> backward(const Saved& saved, const std::vector<at::Tensor>& gradients) {
  RowGradients of(gradients, saved.hidden.size(0));
  std::vector<int64_t> active = of.active();
  at::Tensor d_hidden = saved.wants_hidden ? at::zeros_like(saved.hidden) : at::Tensor();
  at::Tensor d_head = saved.wants_head ? at::zeros_like(saved.lm_head) : at::Tensor();
  if (active.empty()) return {d_hidden, d_head};
  bool all = static_cast<int64_t>(active.size()) == saved.hidden.size(0);
  at::Tensor which = at::from_blob(active.data(), {static_cast<int64_t>(active.size())}, at::kLong);
  at::Tensor hidden = all ? saved.hidden : at::index_select(saved.hidden, 0, which);
  at::Tensor d_rows = saved.wants_hidden ? (all ? d_hidden : at::zeros_like(hidden)) : at::Tensor();
  const float *lse = saved.lse.data_ptr<float>(), *entropy = saved.entropy.data_ptr<float>();
  float inverse_vocab = 1.0f / static_cast<float>(saved.lm_head.size(0));
  each_tile(hidden, saved.lm_head,
            [&](const at::Tensor& h, int64_t first, int64_t count, const at::Tensor& w, int64_t column,
                const at::Tensor& logits) {
              float* tile = logits.data_ptr<float>();
              int64_t width = logits.size(1);
              each_row(count, [&](int64_t i) {
                auto row = static_cast<size_t>(active[static_cast<size_t>(first + i)]);
                kernels::RowGradient r{
                    lse[row], entropy[row], of.g[row], of.e[row], of.u[row], saved.inverse_temperature, inverse_vocab};
                kernels::row_gradient(tile + i * width, width, saved.target[row] - column, r, tile + i * width);
              });
              at::Tensor d_logits = logits.narrow(0, 0, count);
              if (saved.wants_hidden) d_rows.narrow(0, first, count).addmm_(d_logits, w);
              if (saved.wants_head) d_head.narrow(0, column, width).addmm_(d_logits.t(), h.narrow(0, 0, count));
            });
  if (saved.wants_hidden && !all) d_hidden.index_copy_(0, which, d_rows);
  return {d_hidden, d_head};
}

}  // namespace

HeadStats head_stats(const at::Tensor& hidden, const at::Tensor& lm_head, const std::vector<int32_t>& target,
                     double temperature) {
  UCAS_CHECK(hidden.dim() == 2 && hidden.size(0) == static_cast<int64_t>(target.size()), "a target for each row");
  UCAS_CHECK(temperature > 0, "statistics need a positive temperature");
  for (int32_t y : target) UCAS_CHECK(y >= 0 && y < lm_head.size(0), "targets lie in the vocabulary");
  if (!native(hidden)) return head_stats_generic(hidden, lm_head, target, temperature);
  bool wants = c10::GradMode::is_enabled() && (hidden.requires_grad() || lm_head.requires_grad());
  auto inverse_temperature = static_cast<float>(1 / temperature);
  Forward out;
  Saved saved;
  {
    c10::NoGradGuard no_grad;
    saved.hidden = hidden.detach().contiguous();
    saved.lm_head = lm_head.detach();
    out = forward(saved.hidden, saved.lm_head, target, inverse_temperature);
  }
  if (!wants) return {out.logprob, out.entropy, out.confidence, out.logit};
  saved.entropy = out.entropy.detach();
  saved.lse = out.lse;
  saved.target = target;
  saved.inverse_temperature = inverse_temperature;
  saved.wants_hidden = hidden.requires_grad();
  saved.wants_head = lm_head.requires_grad();
  auto outputs = differentiable({hidden, lm_head}, {out.logprob, out.entropy, out.confidence},
                                [saved](const std::vector<at::Tensor>& g) { return backward(saved, g); });
  return {outputs[0], outputs[1], outputs[2], out.logit};
}

at::Tensor head_logits(const at::Tensor& hidden, const at::Tensor& lm_head) {
  c10::NoGradGuard no_grad;
  int64_t rows = hidden.size(0), vocab = lm_head.size(0);
  at::Tensor weight = lm_head.detach();
  at::Tensor h = aligned_rows(hidden.detach(), 0, rows);
  at::Tensor logits = at::empty({h.size(0), vocab}, hidden.options());
  for (int64_t column = 0; column < vocab; column += kernels::kTile) {
    int64_t width = std::min(kernels::kTile, vocab - column);
    at::Tensor tile = logits.narrow(1, column, width);
    at::mm_out(tile, h, weight.narrow(0, column, width).t());
  }
  return logits.narrow(0, 0, rows);
}

}  // namespace ucas
