// Which ranks are there, beside their calls: a collective waits for a rank that is missing, and a host that is gone
// closes no connection. Each rank says once a second in the store of rank 0 that it is there, and rank 0 looks who is
// not. With that each says how far it is, so that a rank which keeps the others waiting is named; it is not ended for
// that, as a slow one is healthy. A rank that fails by itself says why, so that the others can. Where one is lost, a
// process that is not at its end by itself soon says so on standard error and ends with 70. Threads: one for the store,
// one that watches it; calls come from the rank's own.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace ucas {

// How long a rank may be silent: UCAS_HEARTBEAT, in seconds, else 10; 0: none is looked for.
std::chrono::seconds heartbeat_patience();

// Of a rank: the first, and those that it opens for a training (Ranks::open_channel()): of weights, of a step ahead.
constexpr int64_t kChannels = 3;

class Heartbeat {
 public:
  // `store`: a connection of its own.
  Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, std::chrono::seconds patience);
  ~Heartbeat();  // this rank is done, and missed by no one
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // This rank fails, and why. Comes back when the others can have read it, or after a few seconds.
  void tell_failure(const std::string& text);
  // Where this rank is: it begins call `number`, `what`, of a channel below kChannels. `what` stays. Costs no call.
  void begins(int64_t channel, int64_t number, const char* what);
  // A piece of its own work is done: a micro-batch, a response.
  void works();
  // Which ranks have not come to the call that this one is in, and where they are, in words; "" if all have. Asks the
  // store, for two seconds at most.
  std::string missing(int64_t channel);

  // What is known of the rank that was lost first, "rank 1: TEXT"; "" if nothing. Asks the store, for two seconds at
  // most.
  std::string lost();

 private:
  class Beating;
  const std::shared_ptr<Beating> beating_;  // with the threads, which may outlive this where the store is silent
};

}  // namespace ucas
