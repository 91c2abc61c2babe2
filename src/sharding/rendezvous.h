// How ranks find each other, before any of them waits for another one: by a store of c10d, where each says what it is,
// rank 0 compares, and tells all. Under torchrun that is its agent's, of which an attempt has a part of its own, as
// PyTorch's own rendezvous does; else rank 0 opens it at MASTER_ADDR and MASTER_PORT, on the loopback interface alone
// where that is one. `--ranks N` hands rank 0 the socket that it listens on, and all of them a name for their keys that
// no one else knows (cli/launch.cpp).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>

#include "sharding/ranks.h"

namespace ucas {

struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> store;  // this attempt's own
  c10::intrusive_ptr<c10d::Store> beats;  // another connection to it (sharding/heartbeat.h)
  std::string address;                    // of this host, for the others
  RankLocation place;
};
// AgreedError(ErrorKind::config) on all where they are not of one run. std::exception where they do not find each
// other.
Rendezvous join_ranks(int64_t rank, int64_t size, const std::string& host, int64_t port, std::chrono::seconds patience);

// A group by NCCL, in libucas_cuda.so where the headers of NCCL were there when it was built
// (model/tensor/cuda_library.h). Left null where there is none: then tensors go through the host.
using DeviceGroup = c10::intrusive_ptr<c10d::Backend>;
using MakeDeviceGroup = void (*)(DeviceGroup* made, const c10::intrusive_ptr<c10d::Store>& store, int64_t rank,
                                 int64_t size, std::chrono::milliseconds patience);
constexpr const char* kMakeDeviceGroup = "ucas_make_device_group";

}  // namespace ucas
