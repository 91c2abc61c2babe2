// Which ranks are there, beside their calls: a collective waits for a rank that is missing, and a host that is gone
// closes no connection. Each rank says once a second in the store that it is there and which call it is in; rank 0
// looks who is not, and the others look at rank 0. A rank that keeps the others waiting is named and not ended, as a
// slow one is healthy. A rank that fails by itself says why, so that the others can. Where one is lost, a process that
// is not at its end by itself soon says so on standard error and ends with 70. Threads: one for the store, one that
// watches it; calls come from the rank's own.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace ucas {

// How long a rank may be silent: UCAS_HEARTBEAT, in seconds, else 10; 0: none is looked for.
std::chrono::seconds heartbeat_patience();

class Heartbeat {
 public:
  // `store`: a connection of its own.
  Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, std::chrono::seconds patience);
  ~Heartbeat();  // this rank is done, and missed by no one
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // This rank fails, and why. Comes back when the others can have read it, or after a few seconds.
  void tell_failure(const std::string& text);
  // Where this rank is: it begins call `number`, `what`. Costs no call.
  void begins(int64_t number, const char* what);
  // Why a call can have failed: "another rank ended: rank 1: TEXT", "not in this call: rank 2, ..", or "". Asks the
  // store, for two seconds at most.
  std::string reason();

 private:
  class Beating;
  const std::shared_ptr<Beating> beating_;  // with the threads, which may outlive this where the store is silent
};

}  // namespace ucas
