#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "model/backend/block.h"
#include "model/gemm/gemm.h"
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

// By the Frobenius norm; a device is not waited for.
void divide_by_norm(const at::Tensor& x) {
  if (x.is_cpu()) {
    x.div_(std::max(std::sqrt(sum_of_squares(x)), kSmallestNorm));
  } else {
    x.div_(at::linalg_vector_norm(x, 2).clamp_min(kSmallestNorm));
  }
}

}  // namespace

bool is_hidden_matrix(const NamedTensor& parameter) {
  return parameter.tensor.dim() == 2 && parameter.name.find(".layers.") != std::string::npos;
}

at::Tensor orthogonalized(const at::Tensor& matrix) {
  const bool tall = matrix.size(0) > matrix.size(1);  // the smaller of X X^T and X^T X
  const at::Tensor wide = tall ? matrix.t() : matrix;
  const int64_t rows = wide.size(0), padded = aligned(rows);  // rows of 0 stay 0
  at::Tensor x = at::zeros({padded, wide.size(1)}, wide.options());
  x.narrow(0, 0, rows).copy_(wide);
  divide_by_norm(x);
  const at::Tensor gram = at::empty({padded, padded}, wide.options()), polynomial = at::empty_like(gram);
  for (int i = 0; i < kIterations; ++i) {
    gemm(x, x, gram);
    gemm(gram, gram, polynomial);  // A A^T, and A is symmetric
    polynomial.mul_(kC).add_(gram, kB);
    at::Tensor next = x.mul(kA);
    gemm_input_gradient(polynomial, x, next, Into::sum);
    x = next;
  }
  x = x.narrow(0, 0, rows);
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
