#include "model/tensor/stream.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "model/tensor/cuda_library.h"

namespace ucas {

namespace {

constexpr const char* kCudaFile = "libucas_cuda.so";

// Its handle is kept for the life of the process.
void* open_cuda_library() {
  const std::string path = cuda_library_path();
  if (!at::globalContext().hasCUDA() || !exists(path)) return nullptr;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* reason = ::dlerror();
  throw Error(ErrorKind::path, str(path, ": cannot be loaded: ", printable(reason ? reason : "unknown reason", 400),
                                   "; is the LibTorch it was built for installed? device = \"cpu\" goes without it"));
}

void* handle() {
  static void* const opened = open_cuda_library();
  return opened;
}

CudaLibrary& needed() {
  if (CudaLibrary* library = cuda_library(); library != nullptr) return *library;
  throw Error(ErrorKind::device, "this build has no CUDA kernels: build it with a CUDA build of LibTorch and nvcc");
}

}  // namespace

std::string cuda_library_path() {
  Dl_info own = {};
  if (::dladdr(reinterpret_cast<void*>(&open_cuda_library), &own) == 0 || own.dli_fname == nullptr) return kCudaFile;
  const std::string engine = own.dli_fname;
  return path_join(engine.substr(0, engine.rfind('/')), kCudaFile);
}

void* cuda_symbol(const char* name) { return handle() == nullptr ? nullptr : ::dlsym(handle(), name); }

CudaLibrary* cuda_library() {
  using Get = CudaLibrary* (*)();
  static const auto get = reinterpret_cast<Get>(cuda_symbol("ucas_cuda_library"));
  return get == nullptr ? nullptr : get();
}

bool has_kernels(at::Device device) {
  static const bool wanted = [] {
    const char* setting = std::getenv("UCAS_GPU_KERNELS");
    return setting == nullptr || std::string_view(setting) != "off";
  }();
  return wanted && device.is_cuda() && cuda_library() != nullptr && cuda_library()->runs_kernels(device);
}

const gpu::Table& kernel_table(at::Device /*device*/) { return needed().kernels(); }

void make_current(at::Device device) {
  if (device.is_cuda() && cuda_library() != nullptr) cuda_library()->make_current(device);
}

gpu::Stream stream_of(at::Device device) { return needed().stream_of(device); }

void wait_for(at::Device device) {
  if (cuda_library() != nullptr) cuda_library()->wait_for(device);
}

// Not LibTorch's own allocator of such memory, which rounds sizes up to powers of two: a master of 2.2 GB would take 4.
at::Tensor zeros_on_host(at::IntArrayRef shape, at::ScalarType type, at::Device device) {
  const at::Tensor plain = at::zeros(shape, type);
  if (!device.is_cuda() || plain.nbytes() == 0 || cuda_library() == nullptr) return plain;
  void* const memory = plain.data_ptr();
  if (!cuda_library()->pin(memory, plain.nbytes())) {
    static std::once_flag said;
    std::call_once(said, [] {
      warn_here(
          "this system does not let memory be pinned (ulimit -l, or the container's limit): copies between host and "
          "device wait for each other, which is slower");
    });
    return plain;
  }
  return at::from_blob(
      memory, shape, [plain, memory](void*) { cuda_library()->unpin(memory); }, at::TensorOptions().dtype(type));
}

at::Tensor pinned(at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(true));
}

std::unique_ptr<Recorder> make_recorder(at::Device device) { return needed().make_recorder(device); }

void release_unused(at::Device device) {
  if (device.is_cuda() && cuda_library() != nullptr) cuda_library()->release_unused();
}

int64_t peak_memory(at::Device device, bool anew) {
  return cuda_library() == nullptr ? 0 : cuda_library()->peak_memory(device, anew);
}

}  // namespace ucas
