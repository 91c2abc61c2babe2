// Peak FLOPs and bandwidth of a model's device, as measured.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "model/model.h"

namespace ucas {

struct Limits {
  double bandwidth = 0;   // bytes a second; 0: not known
  double operations = 0;  // a second, in GEMMs of the model's type; a multiply-add is two
};

// Of a device: a copy of 1 GiB, read and written; a GEMM of bf16 matrices of 8,192.
Limits measure_limits(at::Device device);
// For a model: of its device; on the CPU, with the threads of now, of a GEMM of the model's width, and of reading
// its weights where these are too large for a cache. Some 50 ms.
Limits measure_limits(Model& model);

// Median wall seconds of one call, the device waited for.
double seconds_of(at::Device device, const std::function<void()>& work);

}  // namespace ucas
