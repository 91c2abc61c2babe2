// Moments of an optimizer, and in bf16 its master weights, kept in host memory and streamed through the device in an
// update: part i + 1 is fetched, part i is updated, part i - 1 is written back, in three buffers and on streams of
// their own. A part is updated by the rule that would update it on the device, on the same numbers and with the same
// stochastic rounding: bit-identical. On the CPU, which is its own host, buffers are copies and all happens in turn.
// Parts are slices of so many elements, of AdamW, and whole matrices, of Muon. Owned by Optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "train/optimizer/update_rules.h"

namespace ucas {

constexpr int64_t kOffloadSlice = kMomentSlice;  // elements: 48 MiB a buffer with f32 moments

class HostState {
 public:
  // Buffers on `device`, for parts of `slice` elements, a multiple of kQuantBlock.
  HostState(at::Device device, int64_t slice);
  ~HostState();
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;

  // Calls `update` for each part of these parameters, in order, as a parameter on the device with gradient and moments.
  // bf16 copies of masters on the host are updated, too. All parts are written back when it returns; where `update`
  // throws, active parts may be lost.
  void run(std::span<const ParameterState* const> parameters,
           const std::function<void(const ParameterState& part)>& update);

 private:
  // Of one part: master, and values and scales of both moments; undefined where there is none.
  static constexpr size_t kKinds = 5, kBuffers = 3;
  using Tensors = std::array<at::Tensor, kKinds>;
  struct Part;
  struct Streams;

  static Tensors on_host(const Part& part);
  void fetch(const Part& part, size_t buffer, bool again);
  ParameterState on_device(const Part& part, size_t buffer) const;
  void put(const Part& part, size_t buffer);
  at::Tensor room_for(size_t buffer, size_t kind, const at::Tensor& host);

  const at::Device device_;
  const int64_t slice_;
  std::array<Tensors, kBuffers> bytes_;  // memory of the device, as long as the longest part so far
  std::array<Tensors, kBuffers> held_;   // the parts in it
  std::unique_ptr<Streams> streams_;     // null on the CPU
};

}  // namespace ucas
