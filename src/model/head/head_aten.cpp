// LM-head statistics in ATen operations, for devices without own kernels; also what the tests compare head.cpp with.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "kernels/lm_head.h"
#include "model/gemm/linear.h"
#include "model/head/head.h"
#include "model/tensor/autograd.h"

namespace ucas {

namespace {

constexpr int64_t kAtenChunk = 1024;  // rows: 32 MB of logits at a time

struct AtenSaved {
  at::Tensor hidden, target, lse, entropy;
  at::Tensor likely;  // [R, K] ids, where asked for
  Matrix lm_head;
  double inverse_temperature;
  bool wants_hidden, wants_head;
};

// a b in f32, whatever they are kept in.
at::Tensor gemm_in_f32(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() == at::kFloat) return at::mm(a, b);
  return a.is_cpu() ? at::mm(a.to(at::kFloat), b.to(at::kFloat)) : at::mm(a, b, at::kFloat);
}

// visit(first row, rows of h, first column, tile of W, z [rows, n] in f32)
template <class Visit>
void each_aten_tile(const at::Tensor& hidden, const at::Tensor& lm_head, double inverse_temperature, Visit visit) {
  int64_t rows = hidden.size(0), vocab = lm_head.size(0);
  for (int64_t first = 0; first < rows; first += kAtenChunk) {
    at::Tensor h = hidden.narrow(0, first, std::min(kAtenChunk, rows - first));
    for (int64_t column = 0; column < vocab; column += kernels::kTile) {
      at::Tensor w = lm_head.narrow(0, column, std::min(kernels::kTile, vocab - column));
      visit(first, h, column, w, gemm_in_f32(h.to(w.scalar_type()), w.t()).mul_(inverse_temperature));
    }
  }
}

// [rows, n] mask of the target's column in this tile.
at::Tensor hit(const at::Tensor& target, int64_t column, int64_t width) {
  return target.unsqueeze(1).eq(at::arange(column, column + width, target.options()).unsqueeze(0));
}

// The K largest of a tile's columns and of those found before it: values [rows, K] and their ids. Which of equal ones
// are taken is topk's to say.
void merge_likeliest(const at::Tensor& z, int64_t column, int64_t count, at::Tensor& value, at::Tensor& id) {
  const at::Tensor columns = at::arange(column, column + z.size(1), z.options().dtype(at::kLong));
  const at::Tensor all = value.defined() ? at::cat({value, z}, 1) : z, own = columns.unsqueeze(0).expand_as(z),
                   ids = id.defined() ? at::cat({id, own}, 1) : own;
  const auto [largest, at] = at::topk(all, std::min(count, all.size(1)), 1);
  value = largest;
  id = ids.gather(1, at);
}

// What merge_likeliest() makes of each chunk of rows.
struct LikelyOfChunks {
  int64_t count;  // K; 0: nothing is asked for
  std::vector<at::Tensor> value, id;
  void merge(const at::Tensor& z, int64_t column) {
    if (count == 0) return;
    if (column == 0) value.emplace_back(), id.emplace_back();
    merge_likeliest(z, column, count, value.back(), id.back());
  }
};

// Adds `each` [rows, 1] to the columns of d that are among the ids [rows, K]; those of other tiles add 0 to an end.
void add_at(const at::Tensor& ids, const at::Tensor& each, int64_t column, at::Tensor& d) {
  const at::Tensor at = ids - column, inside = at.ge(0).logical_and(at.lt(d.size(1)));
  d.scatter_add_(1, at.clamp(0, d.size(1) - 1), at::where(inside, each.expand_as(at), at::zeros({}, d.options())));
}

std::vector<at::Tensor> aten_head_backward(const AtenSaved& s, const std::vector<at::Tensor>& gradients) {
  at::Tensor d_hidden = s.wants_hidden ? at::zeros_like(s.hidden) : at::Tensor();
  at::Tensor d_head = s.wants_head ? gradient_of(s.lm_head.leaf) : at::Tensor();
  at::Tensor part[4];
  for (size_t k = 0; k < 4; ++k)
    part[k] = k < gradients.size() && gradients[k].defined() ? gradients[k] : at::zeros_like(s.lse);
  double inverse_vocab = 1.0 / static_cast<double>(s.lm_head.compute.size(0));
  each_aten_tile(s.hidden, s.lm_head.compute, s.inverse_temperature,
                 [&](int64_t first, const at::Tensor& h, int64_t column, const at::Tensor& w, const at::Tensor& z) {
                   auto of = [&](const at::Tensor& x) { return x.narrow(0, first, h.size(0)).unsqueeze(1); };
                   at::Tensor log_p = z - of(s.lse), p = log_p.exp();
                   at::Tensor d = p * (of(part[2]) - of(part[0])) - of(part[2]) * inverse_vocab -
                                  of(part[1]) * p * (log_p.clamp_min(-100) + of(s.entropy));
                   d = d + of(part[0]) * hit(s.target.narrow(0, first, h.size(0)), column, w.size(0));
                   if (s.likely.defined()) {
                     d.sub_(p * of(part[3]));
                     add_at(s.likely.narrow(0, first, h.size(0)), of(part[3]) / static_cast<double>(s.likely.size(1)),
                            column, d);
                   }
                   d = d.mul_(s.inverse_temperature).to(w.scalar_type());
                   if (s.wants_hidden) d_hidden.narrow(0, first, h.size(0)).add_(gemm_in_f32(d, w));
                   if (s.wants_head)
                     d_head.narrow(0, column, w.size(0)).add_(gemm_in_f32(d.t(), h.to(d.scalar_type())));
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
    int64_t rows = hidden.size(0);
    AtenSaved s{hidden.detach(),        at::empty({rows}, at::kInt),  {}, {}, {}, weight(), 1 / temperature,
                hidden.requires_grad(), weight().leaf.requires_grad()};
    std::copy(target.begin(), target.end(), s.target.data_ptr<int32_t>());
    s.target = s.target.to(hidden.device());
    HeadStats out;
    {
      c10::NoGradGuard no_grad;
      at::TensorOptions options = hidden.options().dtype(at::kFloat);
      at::Tensor most = at::full({rows}, -3.4e38, options), sum = at::zeros({rows}, options);
      at::Tensor weighted = at::zeros({rows}, options), total = at::zeros({rows}, options),
                 chosen = at::zeros({rows}, options);
      LikelyOfChunks likely{.count = likeliest};
      each_aten_tile(s.hidden, s.lm_head.compute, s.inverse_temperature,
                     [&](int64_t first, const at::Tensor& h, int64_t column, const at::Tensor& w, const at::Tensor& z) {
                       auto of = [&](at::Tensor& x) { return x.narrow(0, first, h.size(0)); };
                       at::Tensor old = of(most).clone(), m = at::maximum(old, z.amax(1));
                       at::Tensor shift = (old - m).clamp_min(-100), scale = shift.exp();
                       at::Tensor d = z - m.unsqueeze(1), e = d.exp();
                       of(weighted).copy_(scale * (of(weighted) + of(sum) * shift) + (e * d.clamp_min(-100)).sum(1));
                       of(sum).copy_(scale * of(sum) + e.sum(1));
                       of(most).copy_(m);
                       of(total).add_(z.sum(1));
                       likely.merge(z, column);
                       of(chosen).add_(at::where(hit(s.target.narrow(0, first, h.size(0)), column, w.size(0)), z,
                                                 at::zeros({}, z.options()))
                                           .sum(1));
                     });
      s.lse = most + sum.log();
      s.entropy = sum.log() - weighted / sum;
      out.logprob = chosen - s.lse;
      out.entropy = s.entropy.clone();
      out.confidence = s.lse - total / static_cast<double>(weight().compute.size(0));
      out.logit = chosen * temperature;
      out.margin = chosen - most;
      if (!likely.id.empty()) {
        s.likely = at::cat(likely.id);
        out.likely = at::cat(likely.value).mean(1) - s.lse;
      }
    }
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
