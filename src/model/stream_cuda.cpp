#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "model/stream.h"

namespace ucas {

bool has_kernels(at::Device device) {
  static const bool wanted = [] {
    const char* setting = std::getenv("UCAS_GPU_KERNELS");
    return setting == nullptr || std::string_view(setting) != "off";
  }();
  return wanted && device.is_cuda() && gpu::device() != nullptr;
}

void make_current(at::Device device) {
  if (device.is_cuda()) c10::cuda::set_device(device.index());
}

gpu::Stream stream_of(at::Device device) { return c10::cuda::getCurrentCUDAStream(device.index()).stream(); }

void wait_for(at::Device device) { c10::cuda::getCurrentCUDAStream(device.index()).synchronize(); }

at::Tensor pinned(at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(true));
}

namespace {

class RecordedGraph final : public Recorded {
 public:
  void play() override { graph_.replay(); }
  at::cuda::CUDAGraph graph_;
};

class GraphRecorder final : public Recorder {
 public:
  explicit GraphRecorder(at::Device device)
      : device_(device),
        side_(c10::cuda::getStreamFromPool(false, device.index())),
        pool_(at::cuda::graph_pool_handle()) {}

  std::unique_ptr<Recorded> record(const std::function<void()>& work) override {
    wait_for(device_);
    auto recorded = std::make_unique<RecordedGraph>();
    const c10::cuda::CUDAStreamGuard guard(side_);
    if (!std::exchange(warm_, true)) {  // libraries make their handles, outside of any recording
      work();
      side_.synchronize();
      c10::cuda::CUDACachingAllocator::emptyCache();
    }
    recorded->graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    work();
    recorded->graph_.capture_end();
    side_.synchronize();
    return recorded;
  }

 private:
  const at::Device device_;
  const c10::cuda::CUDAStream side_;
  const c10::MempoolId_t pool_;
  bool warm_ = false;
};

}  // namespace

std::unique_ptr<Recorder> make_recorder(at::Device device) { return std::make_unique<GraphRecorder>(device); }

void release_unused(at::Device device) {
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
}

DeviceMemory memory_of(at::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  const int64_t held = stats.reserved_bytes[0].current - stats.allocated_bytes[0].current;
  return {static_cast<int64_t>(free) + held, static_cast<int64_t>(total)};
}

int64_t peak_memory(at::Device device) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  return stats.allocated_bytes[0].peak;
}

}  // namespace ucas
