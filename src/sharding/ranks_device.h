// What carries tensors between ranks where they do not lie on the CPU: NCCL, by c10d as well. One of two files is built
// (ranks_nccl.cpp where LibTorch is one for CUDA and the headers of CUDA and NCCL are beside it, as pip puts them, else
// ranks_no_nccl.cpp).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>

namespace ucas {

// Null where there is none: then tensors go through the host.
c10::intrusive_ptr<c10d::Backend> make_device_group(const c10::intrusive_ptr<c10d::Store>& store, int64_t rank,
                                                    int64_t size, std::chrono::milliseconds patience);

}  // namespace ucas
