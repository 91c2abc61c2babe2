// LM-head statistics in ATen operations, for devices without own kernels; also what the tests compare head.cpp with.

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "model/gemm/linear.h"
#include "model/head/head.h"
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
  at::Tensor likely;        // [R, K] ids, where asked for
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

std::vector<at::Tensor> aten_head_backward(const AtenSaved& s, const std::vector<at::Tensor>& gradients) {
  const c10::NoGradGuard no_grad;
  const at::Tensor& w = s.lm_head.compute;
  const at::Tensor d_hidden = s.wants_hidden ? at::zeros_like(s.hidden) : at::Tensor();
  const at::Tensor d_head = s.wants_head ? gradient_of(s.lm_head.leaf) : at::Tensor();
  each_logits(s, [&](int64_t first, const at::Tensor& h, const at::Tensor& z) {
    const auto of = [&](const at::Tensor& x) { return x.narrow(0, first, h.size(0)); };
    const auto part = [&](size_t k) {
      return k < gradients.size() && gradients[k].defined() ? of(gradients[k]).unsqueeze(1) : at::zeros_like(of(s.lse));
    };
    const at::Tensor g = part(0), e = part(1), u = part(2), t = part(3), log_p = z - of(s.lse), p = log_p.exp();
    at::Tensor d =
        p * (u - g - t) - u / static_cast<double>(w.size(0)) - e * p * (log_p.clamp_min(-100) + of(s.entropy));
    d.scatter_add_(1, of(s.target), g);
    if (s.likely.defined()) {
      const at::Tensor ids = of(s.likely);
      d.scatter_add_(1, ids, (t / static_cast<double>(ids.size(1))).expand_as(ids));
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
  HeadStats compute(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature, int64_t likeliest,
                    bool wants_gradient) const override {
    const int64_t rows = hidden.size(0);
    at::Tensor ids = at::empty({rows, 1}, at::kLong);
    std::copy(target.begin(), target.end(), ids.data_ptr<int64_t>());
    AtenSaved s{.hidden = hidden.detach(),
                .target = ids.to(hidden.device()),
                .lm_head = weight(),
                .inverse_temperature = 1 / temperature,
                .wants_hidden = hidden.requires_grad(),
                .wants_head = weight().leaf.requires_grad()};
    // Of each chunk of rows, [rows, 1]: log-sum-exp, entropy, mean, chosen and largest z, mean of the likeliest; their
    // ids.
    std::vector<at::Tensor> lse, entropy, mean, chosen, most, likely, which;
    {
      const c10::NoGradGuard no_grad;
      each_logits(s, [&](int64_t first, const at::Tensor& h, const at::Tensor& z) {
        lse.push_back(at::logsumexp(z, {1}, true));
        const at::Tensor log_p = z - lse.back();
        entropy.push_back(-(log_p.exp() * log_p.clamp_min(-100)).sum(1, true));
        mean.push_back(z.mean(1, true));
        chosen.push_back(z.gather(1, s.target.narrow(0, first, h.size(0))));
        most.push_back(z.amax(1, true));
        if (likeliest == 0) return;
        const auto [values, at] = at::topk(z, std::min(likeliest, z.size(1)), 1);
        likely.push_back(values.mean(1, true));
        which.push_back(at);
      });
      s.lse = at::cat(lse);
      s.entropy = at::cat(entropy);
      if (likeliest > 0) s.likely = at::cat(which);
    }
    const at::Tensor z = at::cat(chosen);
    const auto flat = [](const at::Tensor& x) { return x.squeeze(1).clone(); };
    HeadStats out{.logprob = flat(z - s.lse),
                  .entropy = flat(s.entropy),
                  .confidence = flat(s.lse - at::cat(mean)),
                  .logit = flat(z * temperature),
                  .margin = flat(z - at::cat(most))};
    if (likeliest > 0) out.likely = flat(at::cat(likely) - s.lse);
    if (!wants_gradient) return out;
    std::vector<at::Tensor> values = {out.logprob, out.entropy, out.confidence};
    if (out.likely.defined()) values.push_back(out.likely);
    auto outputs = differentiable({hidden, weight().leaf}, values,
                                  [s](const std::vector<at::Tensor>& g) { return aten_head_backward(s, g); });
    return {outputs[0], outputs[1], outputs[2], out.logit, out.margin, out.likely.defined() ? outputs[3] : out.likely};
  }
};

}  // namespace

std::unique_ptr<Head> make_aten_head(Matrix weight) { return std::make_unique<AtenHead>(std::move(weight)); }

}  // namespace ucas
