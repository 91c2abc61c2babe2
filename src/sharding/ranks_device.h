// What carries tensors between processes, by c10d: Gloo, and NCCL where they do not lie on the CPU. That is in
// libucas_cuda.so where the headers of NCCL were there when it was built (model/tensor/cuda_library.h).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace ucas {

// A group over Gloo, by the interface that GLOO_SOCKET_IFNAME names, else by that of this host's `address`; `threads`:
// 0 takes c10d's number. A call or a meeting that takes longer than `patience` throws, as whatever c10d throws.
struct GlooGroup {
  int64_t rank, size;
  std::string address;
  std::chrono::milliseconds patience;
  int64_t threads = 0;
};
c10::intrusive_ptr<c10d::Backend> open_gloo(const c10::intrusive_ptr<c10d::Store>& store, const GlooGroup& group);

// Left null where there is none: then tensors go through the host.
using DeviceGroup = c10::intrusive_ptr<c10d::Backend>;
using MakeDeviceGroup = void (*)(DeviceGroup* made, const c10::intrusive_ptr<c10d::Store>& store, int64_t rank,
                                 int64_t size, std::chrono::milliseconds patience);
constexpr const char* kMakeDeviceGroup = "ucas_make_device_group";

}  // namespace ucas
