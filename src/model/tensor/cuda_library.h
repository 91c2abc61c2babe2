// LibTorch's CUDA half and the kernels compiled for devices, behind one interface: libucas_cuda.so, which is next to
// the engine and is loaded when a device is first requested. So one engine serves LibTorch's builds for CPUs and for
// CUDA, and only that library sees CUDA's headers (stream_cuda.cpp, sharding/ranks_nccl.cpp, kernels/gpu/device.cu).
// All others call stream.h.
#pragma once

#include "model/tensor/stream.h"

namespace ucas {

class CudaLibrary {
 public:
  virtual ~CudaLibrary() = default;
  virtual const gpu::Table& kernels() = 0;
  // Of a CUDA device. One warning says why where none runs.
  virtual bool runs_kernels(at::Device device) = 0;
  virtual void make_current(at::Device device) = 0;
  virtual gpu::Stream stream_of(at::Device device) = 0;
  virtual void wait_for(at::Device device) = 0;
  virtual std::unique_ptr<Recorder> make_recorder(at::Device device) = 0;
  virtual void release_unused() = 0;
  // Host memory that devices copy from and to by themselves; false: the system refuses.
  virtual bool pin(void* memory, size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;
  virtual int64_t peak_memory(at::Device device, bool anew) = 0;
};

// Next to the engine, whether it exists or not: builds without nvcc have none.
std::string cuda_library_path();
// nullptr: LibTorch is a build for CPUs, sees no driver, or the library is not next to the engine. Throws
// Error(ErrorKind::path) if it is there and cannot be loaded.
CudaLibrary* cuda_library();
// Another function of that library by its C name; nullptr where cuda_library() is, or where it was built without it.
void* cuda_symbol(const char* name);

}  // namespace ucas
