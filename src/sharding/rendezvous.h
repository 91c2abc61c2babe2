// How ranks find each other, before any of them waits for another one.
// MASTER_ADDR and MASTER_PORT name a store that rank 0 opens or torchrun's agent has. An agent's outlives a restart,
// with all that an earlier attempt left in it, so it is asked for one thing: where the store is that rank 0 has opened
// for this attempt alone, on a free port, and the random number by which it is known. There each rank says what it is,
// rank 0 compares, and tells all.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sharding/ranks.h"

namespace ucas {

// What a rank says of itself. `facts` are "name = value" and must be the same on all.
struct RankFacts {
  int64_t rank = 0, size = 1;
  std::string host, cores;  // that it runs on: only whether they are the same is asked
  std::string address;      // of this host, as rank 0 is reached from it
  std::vector<std::string> facts;
};
RankFacts facts_here(int64_t rank, int64_t size);

struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> store;  // this attempt's own
  c10::intrusive_ptr<c10d::Store> beats;  // another connection to it (sharding/heartbeat.h)
  std::string address;                    // of this host, for the others
  RankLocation place;
};
// AgreedError(ErrorKind::config) on all where they are not of one run. std::exception where they do not find each
// other.
Rendezvous join_ranks(RankFacts mine, const std::string& host, int64_t port, std::chrono::seconds patience);

// Numeric address of the interface by which `host` is reached; "" where it is not known.
std::string address_towards(const std::string& host, int64_t port);

}  // namespace ucas
