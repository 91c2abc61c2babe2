// What carries tensors between ranks where they do not lie on the CPU: NCCL, by c10d as well. It is in libucas_cuda.so
// where the headers of NCCL were there when that was built (model/tensor/cuda_library.h).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>

namespace ucas {

// Left null where there is none: then tensors go through the host.
using DeviceGroup = c10::intrusive_ptr<c10d::Backend>;
using MakeDeviceGroup = void (*)(DeviceGroup* made, const c10::intrusive_ptr<c10d::Store>& store, int64_t rank,
                                 int64_t size, std::chrono::milliseconds patience);
constexpr const char* kMakeDeviceGroup = "ucas_make_device_group";

}  // namespace ucas
