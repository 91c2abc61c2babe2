#include "base/error.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

[[noreturn]] void no_kernels() {
  throw Error(ErrorKind::device, "this build has no CUDA kernels: build it with a CUDA build of LibTorch and nvcc");
}

}  // namespace

const gpu::Table* gpu::device() { return nullptr; }
bool has_kernels(at::Device) { return false; }
void make_current(at::Device) {}
gpu::Stream stream_of(at::Device) { no_kernels(); }
void wait_for(at::Device) {}
at::Tensor pinned(at::IntArrayRef, at::ScalarType) { no_kernels(); }
std::unique_ptr<Recorder> make_recorder(at::Device) { no_kernels(); }
void release_unused(at::Device) {}
DeviceMemory memory_of(at::Device) { return {}; }
int64_t peak_memory(at::Device) { return 0; }

}  // namespace ucas
