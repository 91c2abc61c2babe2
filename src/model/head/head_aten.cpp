// LM-head statistics in ATen operations, for devices without own kernels; also what the tests compare head.cpp with.

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <tuple>

#include "model/gemm/linear.h"
#include "model/head/head.h"
#include "model/head/row_signals.h"
#include "model/tensor/autograd.h"

namespace ucas {

namespace {

constexpr int64_t kAtenRows = 128;  // whose logits exist at a time: 78 MB of a vocabulary of 152 K

struct AtenSaved {
  at::Tensor hidden, target;  // [R, D], [R, 1] ids
  Matrix lm_head;
  double inverse_temperature;
  bool wants_hidden, wants_head;
  at::Tensor lse, entropy;  // [R, 1]
  RowSignals signals;
};

// sum += a b in f32, whatever they are kept in.
void add_gemm(const at::Tensor& a, const at::Tensor& b, at::Tensor sum) {
  if (a.is_cpu() || a.scalar_type() == at::kFloat) {
    sum.addmm_(a.to(at::kFloat), b.to(at::kFloat));
  } else {
    at::addmm_out(sum, sum, a, b, at::kFloat);
  }
}

// visit(first row, rows of h in the matrix's type, z [rows, V] in f32)
template <class Visit>
void each_logits(const AtenSaved& s, Visit visit) {
  const at::Tensor& w = s.lm_head.compute;
  const int64_t rows = s.hidden.size(0);
  for (int64_t first = 0; first < rows; first += kAtenRows) {
    const at::Tensor h = s.hidden.narrow(0, first, std::min(kAtenRows, rows - first)).to(w.scalar_type());
    const bool plain = h.is_cpu() || h.scalar_type() == at::kFloat;
    at::Tensor z = plain ? at::mm(h.to(at::kFloat), w.to(at::kFloat).t()) : at::mm(h, w.t(), at::kFloat);
    visit(first, h, z.mul_(s.inverse_temperature));
  }
}

// What rows of a signal have read, [n, K] and [n, 1]; token 0 by 0 where a row has read fewer than others.
std::tuple<at::Tensor, at::Tensor, at::Tensor> tokens_of(const RowSignals::Part& part, int64_t first, int64_t n,
                                                         const at::TensorOptions& options) {
  size_t most = 1;
  for (int64_t i = first; i < first + n; ++i) most = std::max(most, part.tokens[i].size());
  const at::Tensor ids = at::zeros({n, static_cast<int64_t>(most)}, at::kLong), by = at::zeros(ids.sizes(), at::kFloat),
                   sum = at::zeros({n, 1}, at::kFloat);
  for (int64_t i = 0; i < n; ++i) {
    sum.data_ptr<float>()[i] = part.sum[first + i];
    for (size_t k = 0; k < part.tokens[first + i].size(); ++k) {
      const size_t at = static_cast<size_t>(i) * most + k;
      ids.data_ptr<int64_t>()[at] = part.tokens[first + i][k].id;
      by.data_ptr<float>()[at] = static_cast<float>(part.by[first + i][k]);
    }
  }
  return {ids.to(options.device()), by.to(options), sum.to(options)};
}

std::vector<at::Tensor> aten_head_backward(const AtenSaved& s, const std::vector<at::Tensor>& gradients) {
  const c10::NoGradGuard no_grad;
  const at::Tensor& w = s.lm_head.compute;
  const at::Tensor d_hidden = s.wants_hidden ? at::zeros_like(s.hidden) : at::Tensor();
  const at::Tensor d_head = s.wants_head ? gradient_of(s.lm_head.parameter) : at::Tensor();
  each_logits(s, [&](int64_t first, const at::Tensor& h, const at::Tensor& z) {
    const auto of = [&](const at::Tensor& x) { return x.narrow(0, first, h.size(0)); };
    const auto part = [&](size_t k) {
      return gradients[k].defined() ? of(gradients[k]).unsqueeze(1) : at::zeros_like(of(s.lse));
    };
    const at::Tensor g = part(0), e = part(1), u = part(2), log_p = z - of(s.lse), p = log_p.exp();
    at::Tensor d = p * (u - g) - u / static_cast<double>(w.size(0)) - e * p * (log_p.clamp_min(-100) + of(s.entropy));
    d.scatter_add_(1, of(s.target), g);
    const std::vector<const RowSignals::Part*> signals = s.signals.differentiable();
    for (size_t k = 0; k < signals.size(); ++k) {
      const auto [ids, by, sum] = tokens_of(*signals[k], first, h.size(0), z.options());
      d.sub_(p * part(3 + k) * sum).scatter_add_(1, ids, part(3 + k) * by);
    }
    d = d.mul_(s.inverse_temperature).to(w.scalar_type());
    if (s.wants_hidden) add_gemm(d, w, of(d_hidden));
    if (s.wants_head) add_gemm(d.t(), h, d_head);
  });
  return {d_hidden, {}};  // the matrix has its own already
}

class AtenHead final : public Head {
 public:
  using Head::Head;
  std::unique_ptr<Head> over(Matrix weight) const override { return make_aten_head(std::move(weight)); }

 protected:
  HeadStats compute(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature,
                    std::span<const TokenSignal> signals, bool wants_gradient) const override {
    const int64_t rows = hidden.size(0);
    at::Tensor ids = at::empty({rows, 1}, at::kLong);
    std::copy(target.begin(), target.end(), ids.data_ptr<int64_t>());
    AtenSaved s{.hidden = hidden.detach(),
                .target = ids.to(hidden.device()),
                .lm_head = weight(),
                .inverse_temperature = 1 / temperature,
                .wants_hidden = hidden.requires_grad(),
                .wants_head = weight().parameter.requires_grad(),
                .lse = {},
                .entropy = {},
                .signals = RowSignals(signals, rows, weight().compute.size(0), static_cast<float>(1 / temperature),
                                      wants_gradient)};
    // Of each chunk of rows, [rows, 1]: log-sum-exp, entropy, mean, chosen and largest z.
    std::vector<at::Tensor> lse, entropy, mean, chosen, most;
    {
      const c10::NoGradGuard no_grad;
      each_logits(s, [&](int64_t first, const at::Tensor& h, const at::Tensor& z) {
        lse.push_back(at::logsumexp(z, {1}, true));
        const at::Tensor log_p = z - lse.back();
        entropy.push_back(-(log_p.exp() * log_p.clamp_min(-100)).sum(1, true));
        mean.push_back(z.mean(1, true));
        chosen.push_back(z.gather(1, s.target.narrow(0, first, h.size(0))));
        most.push_back(z.amax(1, true));
        s.signals.read(first, z);
      });
      s.lse = at::cat(lse);
      s.entropy = at::cat(entropy);
    }
    const at::Tensor z = at::cat(chosen);
    const auto flat = [](const at::Tensor& x) { return x.squeeze(1).clone(); };
    HeadStats out{.logprob = flat(z - s.lse),
                  .entropy = flat(s.entropy),
                  .confidence = flat(s.lse - at::cat(mean)),
                  .logit = flat(z * temperature),
                  .margin = flat(z - at::cat(most))};
    s.signals.finish(out, s.lse.squeeze(1));
    if (!wants_gradient) return out;
    return with_gradient(std::move(out), signals, {hidden, weight().parameter},
                         [s = std::move(s)](const std::vector<at::Tensor>& g) { return aten_head_backward(s, g); });
  }
};

}  // namespace

std::unique_ptr<Head> make_aten_head(Matrix weight) { return std::make_unique<AtenHead>(std::move(weight)); }

}  // namespace ucas
