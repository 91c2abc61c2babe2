// One block of the model as a device runs it: the diagram of model/backend/block.h in bf16 with an f32 residual stream,
// own kernels (kernels/gpu/kernels.h) around GEMMs (model/gemm/gemm.h). Additions to the residual stream and the norm
// after them are one kernel, so a block's output waits, in bf16, for the next norm. Rows are padded to a multiple of
// kRowAlign by a sequence of their own, whose gradients are 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "core/model_options.h"
#include "kernels/gpu/kernels.h"
#include "model/attention/rope.h"
#include "model/backend/block.h"
#include "model/model.h"
#include "model/weights.h"

namespace ucas {

struct Kernels {
  const gpu::Table& table;
  at::Device device;
  gpu::Stream stream() const;
};
Kernels kernels_of(at::Device device);

// Sequences end to end, padded.
struct GpuRows {
  GpuRows(const Packed& packed, at::Device device);
  int64_t rows = 0, padded = 0, most_rows = 0, longest = 0;  // of a sequence's own; with its prefix
  std::vector<int64_t> begin, begin_keys;  // padding is the last sequence, if there is any; keys: with those before
  at::Tensor token, position;              // [P] int32
  at::Tensor cumulative, cumulative_keys;  // [sequences + 1] int32, the same where no sequence continues another
  // Where one does: the rows whose keys each sequence sees, its own last, and the index of each row's key among them,
  // [P + 1] offsets into `seen`. int32.
  at::Tensor key_row, seen, first_seen;

 private:
  void share(const Packed& packed, at::Device device);
};

// What tests put in the place of a device (tests/support/engine/emulation.h): tensors of the CPU run by this table, and
// attention over whole sequences by these. Empty in the program.
struct Emulation {
  using Heads = std::array<at::Tensor, 3>;  // q, k, v, or their gradients
  const gpu::Table* table = nullptr;
  at::Tensor (*attend)(const BlockShape&, const GpuRows&, int64_t window, const Heads&) = nullptr;
  Heads (*attend_backward)(const BlockShape&, const GpuRows&, int64_t window, const Heads&,
                           const at::Tensor& d_attended) = nullptr;
};
Emulation& emulation();

// A tensor of a device from numbers of the host.
at::Tensor on_device(std::span<const int32_t> values, at::Device device);

// Cosines and sines where the kernels read them.
class GpuRope {
 public:
  GpuRope(const ModelConfig& config, at::Device device) : table_(config, config.rope), device_(device) {}
  void reach(int64_t position);
  const float* cosines() const { return cos_.const_data_ptr<float>(); }
  const float* sines() const { return sin_.const_data_ptr<float>(); }

 private:
  RopeTable table_;
  at::Device device_;
  at::Tensor cos_, sin_;  // [positions, d / 2]
  // Recorded steps of a decoder that lives on read where they were recorded. Each is at most half of the next.
  std::vector<at::Tensor> outgrown_;
};

// Keys and values of a layer go there, too.
struct GpuStore {
  const int32_t* slot = nullptr;  // [P]; nullptr: nowhere
  gpu::Cache cache = {};
};

// The steps of a block over `rows` padded rows.
class GpuBlock {
 public:
  GpuBlock(const BlockShape& shape, const Kernels& kernels, const GpuRope& rope, const at::Tensor& position)
      : s_(shape), kernels_(kernels), rope_(rope), position_(position), P_(position.size(0)) {}

  at::Tensor bf16(int64_t width) const { return make(width, at::kBFloat16); }
  at::Tensor f32(int64_t width) const { return make(width, at::kFloat); }

  at::Tensor embed(const at::Tensor& token, const at::Tensor& table) const;  // [P, D] f32
  // sum = x + y, h = its norm; `sum` may be x.
  void add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& w, const at::Tensor& sum,
                const at::Tensor& h) const;
  at::Tensor norm(const at::Tensor& x, const at::Tensor& w) const;  // [P, D] bf16
  // The heads of h's GEMM, placed.
  void project(const Layer& layer, const at::Tensor& h, Activations& a, const GpuStore& store) const;
  // qkv -> attended, over whole sequences.
  void attend(const GpuRows& rows, int64_t window, Activations& a) const;
  at::Tensor activation(const Activations& a) const;  // [P, F] swiglu of gate_up
  void norm_backward(const at::Tensor& x, const at::Tensor& w, const at::Tensor& d_out, const at::Tensor& dx,
                     const at::Tensor& dx_narrow) const;
  // d_q, d_k, d_v [P, heads, d] -> d_qkv
  void heads_backward(const Layer& layer, const Activations& a, const std::array<at::Tensor, 3>& d_heads,
                      const at::Tensor& d_qkv) const;
  std::array<at::Tensor, 3> attend_backward(const GpuRows& rows, int64_t window, const Activations& a,
                                            const at::Tensor& d_attended) const;
  // act: the recomputed activation, if defined.
  void activation_backward(const Activations& a, const at::Tensor& d_act, const at::Tensor& d_gate_up,
                           const at::Tensor& act) const;
  // sum = its rows added up, on top of what is there or not; f32 of f32 or bf16 [n, width].
  enum class Onto { nothing, itself };
  void add_rows(const at::Tensor& rows, const at::Tensor& sum, Onto onto) const;

  const BlockShape& shape() const { return s_; }
  const Kernels& kernels() const { return kernels_; }

 private:
  at::Tensor make(int64_t width, at::ScalarType type) const {
    return at::empty({P_, width}, at::TensorOptions().dtype(type).device(kernels_.device));
  }
  const BlockShape& s_;
  const Kernels& kernels_;
  const GpuRope& rope_;
  at::Tensor position_;
  int64_t P_;
};

// The whole forward, for its backward.
struct GpuSavedForBackward {
  explicit GpuSavedForBackward(const Packed& packed, at::Device device) : rows(packed, device) {}
  GpuRows rows;
  Recompute recompute = Recompute::none;
  std::vector<Activations> blocks;
  at::Tensor last;  // [P, D] before the final norm
};

// attention of one block: x -> attended; then middle and gate_up. `h` is the norm of x. Gives the output that waits.
void gpu_attention(const GpuBlock& block, const Layer& layer, const GpuRows& rows, const at::Tensor& h, Activations& a,
                   const GpuStore& store);
at::Tensor gpu_mlp(const GpuBlock& block, const Layer& layer, Activations& a, bool wants_output);

// Adds the gradients of all parameters that are trained to their .grad, from d loss / d hidden [R, D] f32. Frees what
// is kept on its way.
void gpu_backward(const BlockShape& shape, const Kernels& kernels, const Weights& weights, const GpuRope& rope,
                  GpuSavedForBackward& saved, const at::Tensor& d_hidden);

}  // namespace ucas
