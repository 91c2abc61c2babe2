#include "kernels/head.h"

#include "base/error.h"
#include "base/str.h"
#include "module.h"

namespace ucas::python {

namespace {

using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Weight = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutMatrix = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

kernels::HeadInput input_of(const Matrix& hidden, const Weight& weight, const In<int64_t>& target, double temperature) {
  const auto rows = static_cast<int64_t>(hidden.shape(0)), width = static_cast<int64_t>(hidden.shape(1)),
             vocab = static_cast<int64_t>(weight.shape(0));
  const bool f32 = weight.dtype() == nb::dtype<float>(), bf16 = weight.dtype().code == 4 && weight.dtype().bits == 16;
  if (!f32 && !bf16) throw Error(ErrorKind::dtype, "weight: expected float32 or bfloat16");
  if (static_cast<int64_t>(weight.shape(1)) != width || static_cast<int64_t>(target.shape(0)) != rows || vocab == 0 ||
      width == 0) {
    throw Error(ErrorKind::shape, str("expected hidden [R, D], weight [V, D], target [R]; got [", rows, ", ", width, "], [",
                             vocab, ", ", weight.shape(1), "], [", target.shape(0), "]"));
  }
  if (!(temperature > 0)) throw Error(ErrorKind::config, "temperature: expected a number above 0");
  for (int64_t y : span_of(target)) {
    if (y < 0 || y >= vocab) throw Error(ErrorKind::shape, str("target ", y, " is not in the vocabulary of ", vocab));
  }
  return {.rows = rows,
          .vocab = vocab,
          .width = width,
          .hidden = hidden.data(),
          .weight = {f32 ? static_cast<const float*>(weight.data()) : nullptr,
                     bf16 ? static_cast<const kernels::Bf16*>(weight.data()) : nullptr},
          .target = target.data(),
          .inverse_temperature = static_cast<float>(1 / temperature)};
}

void check_rows(size_t rows, const std::vector<const Out*>& arrays) {
  for (const Out* array : arrays)
    if (array->shape(0) != rows) throw Error(ErrorKind::shape, "expected a number for each row");
}

void stats(const Matrix& hidden, const Weight& weight, const In<int64_t>& target, double temperature, int64_t threads,
           const Out& logprob, const Out& entropy, const Out& confidence, const Out& logit, const Out& margin,
           const Out& lse) {
  const kernels::HeadInput in = input_of(hidden, weight, target, temperature);
  check_rows(hidden.shape(0), {&logprob, &entropy, &confidence, &logit, &margin, &lse});
  const kernels::HeadOutput out{logprob.data(), entropy.data(), confidence.data(),
                                logit.data(),   margin.data(),  lse.data()};
  nb::gil_scoped_release released;
  kernels::head_stats(in, out, threads);
}

void gradient(const Matrix& hidden, const Weight& weight, const In<int64_t>& target, double temperature,
              int64_t threads, const Out& lse, const Out& entropy, const Out& d_logprob, const Out& d_entropy,
              const Out& d_confidence, nb::object d_hidden, nb::object d_weight) {
  const kernels::HeadInput in = input_of(hidden, weight, target, temperature);
  check_rows(hidden.shape(0), {&lse, &entropy, &d_logprob, &d_entropy, &d_confidence});
  auto place = [](const nb::object& array, int64_t rows, int64_t width) -> float* {
    if (array.is_none()) return nullptr;
    auto matrix = nb::cast<OutMatrix>(array, false);
    if (static_cast<int64_t>(matrix.shape(0)) != rows || static_cast<int64_t>(matrix.shape(1)) != width)
      throw Error(ErrorKind::shape, "a gradient has the shape of what it is of");
    return matrix.data();  // the caller's array holds it
  };
  float *to_hidden = place(d_hidden, in.rows, in.width), *to_weight = place(d_weight, in.vocab, in.width);
  nb::gil_scoped_release released;
  kernels::head_gradient(in, lse.data(), entropy.data(), {d_logprob.data(), d_entropy.data(), d_confidence.data()},
                         to_hidden, to_weight, threads);
}

}  // namespace

// noconvert: what is written to must be the caller's own array, never a converted copy.
void bind_head(nb::module_& m) {
  m.def("head_stats", &stats, nb::arg("hidden").noconvert(), nb::arg("weight").noconvert(),
        nb::arg("target").noconvert(), nb::arg("temperature"), nb::arg("threads"), nb::arg("logprob").noconvert(),
        nb::arg("entropy").noconvert(), nb::arg("confidence").noconvert(), nb::arg("logit").noconvert(),
        nb::arg("margin").noconvert(), nb::arg("lse").noconvert());
  m.def("head_gradient", &gradient, nb::arg("hidden").noconvert(), nb::arg("weight").noconvert(),
        nb::arg("target").noconvert(), nb::arg("temperature"), nb::arg("threads"), nb::arg("lse").noconvert(),
        nb::arg("entropy").noconvert(), nb::arg("d_logprob").noconvert(), nb::arg("d_entropy").noconvert(),
        nb::arg("d_confidence").noconvert(), nb::arg("d_hidden").none(), nb::arg("d_weight").none());
}

}  // namespace ucas::python
