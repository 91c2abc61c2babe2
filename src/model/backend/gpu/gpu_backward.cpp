// Backward of gpu_forward.cpp, from the bottom of block.h's diagram up; norms and SwiGLU are recomputed. Gradients of
// frozen parameters are not computed.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "model/backend/gpu/gpu_block.h"

namespace ucas {

namespace {

class GpuBackward {
 public:
  GpuBackward(const GpuBlock& block, const GpuSavedForBackward& saved)
      : block_(block),
        saved_(saved),
        d_h_(block.bf16(block.shape().D)),
        d_act_(block.bf16(block.shape().F)),
        d_gate_up_(block.bf16(2 * block.shape().F)),
        d_attended_(block.bf16(block.shape().query)),
        d_qkv_(block.bf16(block.shape().N)) {}

  // dx [P, D] f32 and its rounded copy hold the gradient of the block's output and become those of its input.
  void run(const Layer& layer, const Activations& saved, const at::Tensor& dx, const at::Tensor& dx_narrow) {
    const Activations a = recompute(layer, saved);
    at::Tensor d_low = layer.down.backward_low(dx_narrow);
    layer.down.backward_input(dx_narrow, d_low, d_act_);
    {
      const at::Tensor act = layer.down.trains() ? block_.bf16(block_.shape().F) : at::Tensor();
      block_.activation_backward(a, d_act_, d_gate_up_, act);
      if (act.defined()) layer.down.backward_weight(act, dx_narrow, d_low, {});
    }
    d_low = layer.gate_up.backward_low(d_gate_up_);
    if (layer.gate_up.trains()) {
      layer.gate_up.backward_weight(block_.norm(a.middle, layer.mlp_norm), d_gate_up_, d_low, {});
    }
    layer.gate_up.backward_input(d_gate_up_, d_low, d_h_);
    block_.norm_backward(a.middle, layer.mlp_norm, d_h_, dx, dx_narrow);

    d_low = layer.out.backward_low(dx_narrow);
    layer.out.backward_input(dx_narrow, d_low, d_attended_);
    layer.out.backward_weight(a.attended, dx_narrow, d_low, {});
    block_.heads_backward(layer, a, block_.attend_backward(saved_.rows, layer.window, a, d_attended_), d_qkv_);
    d_low = layer.qkv.backward_low(d_qkv_);
    if (layer.qkv.trains()) {
      layer.qkv.backward_weight(block_.norm(a.x, layer.input_norm), d_qkv_, d_low, bias(layer.qkv));
    }
    layer.qkv.backward_input(d_qkv_, d_low, d_h_);
    block_.norm_backward(a.x, layer.input_norm, d_h_, dx, dx_narrow);
  }

 private:
  Activations recompute(const Layer& layer, const Activations& saved) {
    Activations a = saved;
    if (saved_.recompute == Recompute::block) {
      gpu_attention(block_, layer, saved_.rows, block_.norm(a.x, layer.input_norm), a, {});
    }
    if (saved_.recompute != Recompute::none) gpu_mlp(block_, layer, a, false);
    return a;
  }
  at::Tensor bias(const Linear& qkv) const {
    if (!qkv.trains_bias()) return {};
    const at::Tensor sum = at::empty({d_qkv_.size(1)}, d_qkv_.options().dtype(at::kFloat));
    block_.add_rows(d_qkv_, sum, GpuBlock::Onto::nothing);
    return sum;
  }

  const GpuBlock& block_;
  const GpuSavedForBackward& saved_;
  at::Tensor d_h_, d_act_, d_gate_up_, d_attended_, d_qkv_;
};

}  // namespace

void gpu_backward(const BlockShape& shape, const Kernels& kernels, const Weights& weights, const GpuRope& rope,
                  GpuSavedForBackward& saved, const at::Tensor& d_hidden) {
  const at::NoGradGuard no_grad;
  const GpuBlock block(shape, kernels, rope, saved.rows.position);
  const at::Tensor dx = at::zeros({saved.rows.padded, shape.D}, saved.last.options()), d_last = at::zeros_like(dx);
  d_last.narrow(0, 0, saved.rows.rows).copy_(d_hidden);
  const at::Tensor dx_narrow = block.bf16(shape.D);
  block.norm_backward(saved.last, weights.norm, d_last, dx, dx_narrow);
  {
    GpuBackward backward(block, saved);
    each_block_backward(weights, saved.blocks, backward, dx, dx_narrow);
  }
  if (!weights.embed.parameter.requires_grad()) return;
  // By sorting, not by atomics: bit-identical every time.
  at::Tensor d_embed = gradient_of(weights.embed.parameter);
  d_embed.index_put_({saved.rows.token.narrow(0, 0, saved.rows.rows).to(at::kLong)}, dx.narrow(0, 0, saved.rows.rows),
                     /*accumulate=*/true);
}

}  // namespace ucas
