// A CUDA device from LibTorch's side: its stream, and work recorded once and played again. What needs CUDA is in a
// library of its own (cuda_library.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "kernels/gpu/kernels.h"

namespace ucas {

// Whether this build has kernels of its own that this device runs, and they are wanted: UCAS_GPU_KERNELS=off in the
// environment leaves it to LibTorch's operations. Where no image fits the device, one warning says why and what to do.
bool has_kernels(at::Device device);
// Of a CUDA device whose has_kernels() is true.
const gpu::Table& kernel_table(at::Device device);
// What a thread starts from here on goes to this device; tensors made on it do not see to that by themselves.
void make_current(at::Device device);
gpu::Stream stream_of(at::Device device);
// Waits until the device has done what was queued.
void wait_for(at::Device device);
// A host tensor that a device copies from and to while the host continues.
at::Tensor pinned(at::IntArrayRef shape, at::ScalarType type);

// Zeros in memory of the host that this device copies from and to in the background: page-locked, of exactly so many
// bytes. If the system refuses to lock so many, and for the CPU, plain memory.
at::Tensor zeros_on_host(at::IntArrayRef shape, at::ScalarType type, at::Device device);

// Device work that is recorded while `work` runs, once, and then played as often as wanted. Tensors that it reads and
// writes must live as long; those that it makes keep their places between plays.
class Recorded {
 public:
  virtual ~Recorded() = default;
  virtual void play() = 0;
};
// Recordings of one recorder share the memory of what they make: they are played one after the other, and what one
// has made is gone when another is played.
// All record on one stream of the device: LibTorch keeps a workspace of cuBLAS for every stream it has seen. Where
// `work` throws, the capture is ended first, and the device can be used on.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual std::unique_ptr<Recorded> record(const std::function<void()>& work) = 0;
};
std::unique_ptr<Recorder> make_recorder(at::Device device);

// Gives back what LibTorch caches of a device: after many allocations of other sizes a large one, or the other way
// round, may not fit.
void release_unused(at::Device device);

int64_t peak_memory(at::Device device, bool anew = false);  // most bytes that tensors held so far; anew: since then

}  // namespace ucas
