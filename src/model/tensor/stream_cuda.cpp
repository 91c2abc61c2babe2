#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <dlfcn.h>

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "base/str.h"
#include "base/terminal/log.h"
#include "model/tensor/cuda_library.h"

namespace ucas {

namespace {

// Looked at once a device, with one warning where it has no kernels.
bool runs_images(at::Device device) {
  static std::mutex mutex;
  static std::map<int, bool> known;
  const std::lock_guard lock(mutex);
  const auto [found, first] = known.try_emplace(device.index(), true);
  if (!first) return found->second;
  const c10::cuda::CUDAGuard guard(device);
  const std::string why = gpu::refusal();
  found->second = why.empty();
  if (why.empty()) return true;
  cudaDeviceProp of = {};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&of, device.index()));
  warn_here(str(device.str(), " (", of.name, ", sm_", of.major, of.minor, "): no kernel of this build runs there (",
                why, "), so LibTorch's operations are used, which are slower; ",
                of.major < 8
                    ? std::string("the kernels need sm_80 or later, and in f32 (--dtype f32) it is faster")
                    : str("build with -DUCAS_CUDA_ARCHITECTURES=", of.major, of.minor, ", or update the driver")));
  return false;
}

// A capture that failed leaves its error in CUDA's runtime. Where that is linked into this library, LibTorch has
// another.
void clear_error() {
  cudaGetLastError();
  using Clear = cudaError_t (*)();
  static const auto torchs = reinterpret_cast<Clear>(::dlsym(RTLD_DEFAULT, "cudaGetLastError"));
  if (torchs != nullptr) torchs();
}

void wait_for_stream(at::Device device) { c10::cuda::getCurrentCUDAStream(device.index()).synchronize(); }

class RecordedGraph final : public Recorded {
 public:
  void play() override { graph_.replay(); }
  at::cuda::CUDAGraph graph_;
};

// One a device for the whole process.
c10::cuda::CUDAStream recording_stream(at::Device device) {
  static std::mutex mutex;
  static std::map<int, c10::cuda::CUDAStream> streams;
  const std::lock_guard lock(mutex);
  const auto found = streams.find(device.index());
  if (found != streams.end()) return found->second;
  return streams.emplace(device.index(), c10::cuda::getStreamFromPool(false, device.index())).first->second;
}

// From capture_begin to capture_end, whatever is thrown in between: a stream that stays in capture makes every later
// call fail, and the allocator keeps serving from the graph's pool.
class Capture {
 public:
  Capture(at::cuda::CUDAGraph& graph, at::Device device, c10::MempoolId_t pool)
      : graph_(graph), device_(device), pool_(pool) {
    graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
  }
  void end() {
    graph_.capture_end();
    ended_ = true;
  }
  ~Capture() {
    if (ended_) return;
    try {
      graph_.capture_end();
      return;
    } catch (...) {  // an invalid capture: the stream has left it, the allocator has not
    }
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device_.index(), pool_);
    } catch (...) {
    }
    clear_error();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  at::cuda::CUDAGraph& graph_;
  const at::Device device_;
  const c10::MempoolId_t pool_;
  bool ended_ = false;
};

class GraphRecorder final : public Recorder {
 public:
  explicit GraphRecorder(at::Device device)
      : device_(device), side_(recording_stream(device)), pool_(at::cuda::graph_pool_handle()) {}

  // Early launches inside a capture are refused on some devices (sm_120): then they are given up for this process.
  std::unique_ptr<Recorded> record(const std::function<void()>& work) override {
    static std::atomic<bool> tried = false;
    if (tried) return record_once(work);
    try {
      auto recorded = record_once(work);
      tried = true;
      return recorded;
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const std::exception& error) {
      if (tried.exchange(true)) throw;
      warn_here(str(device_.str(), ": a decoding step could not be recorded (", printable(error.what(), 200),
                    "); it is tried once more without early launches"));
      gpu::launch_early(false);
      return record_once(work);
    }
  }

 private:
  std::unique_ptr<Recorded> record_once(const std::function<void()>& work) {
    wait_for_stream(device_);
    auto recorded = std::make_unique<RecordedGraph>();
    const c10::cuda::CUDAStreamGuard guard(side_);
    if (!std::exchange(warm_, true)) {  // libraries make their handles, outside of any recording
      work();
      side_.synchronize();
      c10::cuda::CUDACachingAllocator::emptyCache();
    }
    Capture capture(recorded->graph_, device_, pool_);
    work();
    capture.end();
    side_.synchronize();
    return recorded;
  }

  const at::Device device_;
  const c10::cuda::CUDAStream side_;
  const c10::MempoolId_t pool_;
  bool warm_ = false;
};

class LibTorchCuda final : public CudaLibrary {
 public:
  const gpu::Table& kernels() override { return gpu::device(); }
  bool runs_kernels(at::Device device) override { return runs_images(device); }
  void make_current(at::Device device) override { c10::cuda::set_device(device.index()); }
  gpu::Stream stream_of(at::Device device) override { return c10::cuda::getCurrentCUDAStream(device.index()).stream(); }
  void wait_for(at::Device device) override { wait_for_stream(device); }
  std::unique_ptr<Recorder> make_recorder(at::Device device) override {
    return std::make_unique<GraphRecorder>(device);
  }
  void release_unused() override { c10::cuda::CUDACachingAllocator::emptyCache(); }
  bool pin(void* memory, size_t bytes) override {
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess) return true;
    cudaGetLastError();
    return false;
  }
  void unpin(void* memory) override { cudaHostUnregister(memory); }
  int64_t peak_memory(at::Device device, bool anew) override {
    const int64_t peak = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()).allocated_bytes[0].peak;
    if (anew) c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
    return peak;
  }
};

}  // namespace

}  // namespace ucas

extern "C" ucas::CudaLibrary* ucas_cuda_library() {
  static ucas::LibTorchCuda library;
  return &library;
}
