// Models as a GPU's kernels run them: walked on the CPU everywhere, and on a CUDA device where there is one.
#pragma once

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <memory>
#include <string>
#include <vector>

#include "model/tensor/stream.h"
#include "support/engine/emulation.h"

namespace ucas::testing {

inline bool has_cuda() {
  return at::globalContext().hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0 &&
         has_kernels(at::Device(at::kCUDA, 0));
}

struct GpuView {
  const char* name;
  std::unique_ptr<Model> model;
};

// `make(device)` gives the same model wherever it is asked for.
template <class Make>
std::vector<GpuView> gpu_views(Make make) {
  std::vector<GpuView> views;
  views.push_back({"walked", emulated_view(*make(at::Device(at::kCPU)))});
  if (has_cuda()) views.push_back({"cuda", make(at::Device(at::kCUDA, 0))});
  return views;
}

}  // namespace ucas::testing
