#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "train/optimizer/update_rules.h"

namespace ucas {

namespace {

// Jordan et al. 2024 ("Muon: an optimizer for hidden layers in neural networks"): X <- a X + (b A + c A^2) X, A = X X^T
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr int kIterations = 5;
constexpr double kSmallestNorm = 1e-7;
// Liu et al. 2025 ("Muon is Scalable for LLM Training", 2.2): the root mean square of an AdamW update, so that its
// learning rate and weight decay serve for both.
constexpr double kAdamRms = 0.2;

}  // namespace

bool is_hidden_matrix(const NamedTensor& parameter) {
  return parameter.tensor.dim() == 2 && parameter.name.find(".layers.") != std::string::npos;
}

at::Tensor orthogonalized(const at::Tensor& matrix) {
  const bool tall = matrix.size(0) > matrix.size(1);  // the smaller of X X^T and X^T X
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x.div(at::linalg_vector_norm(x, 2).clamp_min(kSmallestNorm));
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor gram = at::mm(x, x.t());
    const at::Tensor polynomial = at::addmm(gram, gram, gram, /*beta=*/kB, /*alpha=*/kC);
    x = at::addmm(x, polynomial, x, /*beta=*/kA, /*alpha=*/1);
  }
  return tall ? x.t() : x;
}

// m <- mu m + (1 - mu) g; step = orthogonalized((1 - mu) g + mu m) (Nesterov);
// p <- p (1 - lr wd) - lr 0.2 sqrt(max(rows, columns)) step.
bool muon(const ParameterState& slot, const ParameterUpdate& u) {
  at::Tensor& g = slot.parameter.mutable_grad();
  const at::Tensor p = slot.parameter.detach();
  const double mu = u.config.momentum;
  g.mul_(u.clip);
  const at::Tensor m = read_whole(slot.mean);
  m.mul_(mu).add_(g, 1 - mu);
  const at::Tensor step = orthogonalized(g.mul(1 - mu).add_(m, mu));
  const auto larger = static_cast<double>(std::max(p.size(0), p.size(1)));
  p.mul_(1 - u.lr * u.decay).sub_(step, u.lr * kAdamRms * std::sqrt(larger));
  const bool fine = all_finite(p) && all_finite(m);
  if (fine) write_whole(slot.mean, m, Noise::of(slot.index, u.steps, 0));
  g.zero_();
  return fine;
}

}  // namespace ucas
