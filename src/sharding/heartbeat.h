// Which ranks are alive, apart from collectives: a collective waits for a missing rank, and a host that is gone closes
// no connection. Each rank publishes a heartbeat once a second in the store, with the call it is in; rank 0 checks all
// ranks, the others check rank 0. A rank that is late is named and not ended: a slow rank is healthy. A rank that fails
// publishes its error for the others to report. Where a rank is lost, a process that does not end within seconds
// reports it on standard error and exits with 70. Threads: one for the store, one that watches it; calls come from the
// rank's own.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "sharding/ranks.h"

namespace ucas {

// How ranks find each other before the first collective: each publishes its facts in a store of c10d, rank 0 compares
// them and publishes the result. Under torchrun the store is its agent's, with a prefix for each attempt, as PyTorch's
// own rendezvous has it; else rank 0 opens it at MASTER_ADDR and MASTER_PORT, on the loopback interface alone where
// that is one. `--ranks N` passes rank 0 its listening socket, and all ranks a prefix for keys that no other program
// knows (cli/launch.cpp).

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
// (model/tensor/cuda_library.h). Left null where there is none: then tensors go through the host. It is ended where all
// is well. Else its own end could wait for ever in a call that another rank left, and the process ends without it.
struct DeviceGroup {
  c10::intrusive_ptr<c10d::Backend> group;
  ~DeviceGroup();
};
using MakeDeviceGroup = void (*)(DeviceGroup* made, const c10::intrusive_ptr<c10d::Store>& store, int64_t rank,
                                 int64_t size, std::chrono::milliseconds patience);
constexpr const char* kMakeDeviceGroup = "ucas_make_device_group";

// How long heartbeats may be missing: UCAS_HEARTBEAT, in seconds, else 10; 0: heartbeats are not checked.
std::chrono::seconds heartbeat_patience();

class Heartbeat {
 public:
  // `store`: a connection of its own.
  Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, std::chrono::seconds patience);
  ~Heartbeat();  // deregisters this rank
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // This rank fails, and why. Comes back when the others can have read it, or after a few seconds.
  void publish_failure(const std::string& text);
  // Where this rank is: it begins call `number`, `what`. Costs no call.
  void begins(int64_t number, const char* what);
  // Called once a second, from another thread: what hangs, in words, "" while nothing does. If something hangs, this
  // process publishes it, reports it and exits with 70: it waits for its device, where no error would reach it.
  void watch(std::function<std::string()> hangs);
  // Why a call may have failed: "another rank ended: rank 1: TEXT", "not in this call: rank 2, ..", or "". Waits two
  // seconds at most for the store.
  std::string reason();

 private:
  class Beating;
  const std::shared_ptr<Beating> beating_;  // with the threads, which may outlive this where the store does not answer
};

// Calls of ranks that a device has been given. All ranks begin a call together, so one that is not over after
// `patience` hangs in the device or between devices, and no rank can be named for it. Threads: any.
class DeviceCalls {
 public:
  explicit DeviceCalls(std::chrono::seconds patience) : patience_(patience) {}
  void add(int64_t number, const char* what, c10::intrusive_ptr<c10d::Work> work);
  std::string overdue();  // the first such call in words; "" for none

 private:
  struct Call {
    int64_t number;
    std::string what;
    c10::intrusive_ptr<c10d::Work> work;
    std::chrono::steady_clock::time_point since;
  };
  const std::chrono::seconds patience_;
  std::mutex guard_;
  std::deque<Call> calls_;
};

}  // namespace ucas
