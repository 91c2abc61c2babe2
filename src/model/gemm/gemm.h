// GEMMs of rows with a parameter, forward and backward, where both are f32 or both bf16. Sums are f32 in
// either case, each in a fixed order: what a GEMM gives a row depends on that row alone, and nothing depends on the
// threads (docs/numerics.md). On other devices than the CPU they are the library's, sums in f32, too.
// Legend: P rows, of which padding is 0: a multiple of 16, but for the first GEMM also a few (gemm_rows); I
// inputs, O outputs of the parameter W [O, I].
// Rows may be part of wider ones. Threads: one caller; they use ATen's.
#pragma once

#include <ATen/core/Tensor.h>
#include <string>

namespace ucas {

// A parameter that GEMMs read: itself, or a copy of it in another type (model/weights.h).
struct Matrix {
  at::Tensor parameter, compute;  // [O, I]
};

// As many rows as the first GEMM wants to be given for so many in that type (f32, bf16): few are taken as they are,
// others with padding.
int64_t gemm_rows(int64_t rows, at::ScalarType type);
// out = x W^T, or onto + x W^T. x [P, I], out and onto [P, O]: f32, or both of x's type; onto may be out.
void gemm(const at::Tensor& x, const at::Tensor& w, const at::Tensor& out, const at::Tensor& onto = {});
// d_x = d_out W, or d_x + d_out W; d_x f32, or all of W's type.
enum class Into { fresh, sum };
void gemm_input_gradient(const at::Tensor& d_out, const at::Tensor& w, const at::Tensor& d_x, Into into = Into::fresh);
// sum += d_out^T x; sum [O, I] f32.
void gemm_weight_gradient(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& sum);

// What docs/numerics.md promises of GEMMs, tried on the machine at hand.
// Rows of a width of 896 (Qwen2.5-0.5B) alone and among 240 others, on one thread and on all, in f32 and bf16:
// "equal bits in f32 and bf16", or where they differ.
std::string check_rows();

}  // namespace ucas
