// Several processes that train one policy together: each samples a share of the prompts and computes a share of the
// gradients, and all of them hold the same batch, the same advantages and the same weights. Rank 0 alone writes.
// Alone by default. Under torchrun, or whatever sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, PyTorch's own
// engine carries the bytes: c10d over Gloo; for tensors of CUDA devices see train/ranks_device.h.
// Every call but hand() and those on the store is a collective: made by all ranks, in order. `what` names the call. It
// is compared before anything else travels, so that ranks which do not do the same end in an Error that names both.
// Error("ranks", exit 70) there, and where another rank is gone. Threads: one caller.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace ucas {

// The same Error on every rank: rank 0 prints it (cli/engine/speaking.h).
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Where a rank runs, counted among all of them when they join.
struct RankPlace {
  int64_t on_host = 1;        // ranks of this host
  int64_t local = 0;          // this one's number among them
  int64_t sharing_cores = 1;  // of them, those that may run on exactly the same cores
};

class Ranks {
 public:
  using OfRanks = std::span<const std::vector<at::Tensor>>;  // a list for each rank, each maybe empty

  virtual ~Ranks() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  virtual RankPlace place() const { return {}; }
  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }

  // Until all are here.
  virtual void meet(const char* what) = 0;
  // The bytes of every rank, in order.
  virtual std::vector<std::string> gather(const char* what, const std::string& bytes) = 0;
  // In place: their sum over all ranks, the same bits on each, yet other bits than a sum in one process.
  virtual void add_up(const char* what, std::span<const at::Tensor> tensors) = 0;
  // In place at rank r: the sum over all ranks of what is for r. What it is elsewhere then is not said.
  virtual void reduce(const char* what, OfRanks to) = 0;
  // In place: what is of rank r becomes r's on all.
  virtual void broadcast(const char* what, OfRanks from) = 0;
  void broadcast(const char* what, std::span<const at::Tensor> tensors, int64_t from);
  // From one rank to another, in place; these two alone call. A collective comes before a row of these.
  virtual void hand(const char* what, std::span<const at::Tensor> tensors, int64_t from, int64_t to) = 0;
  // Each rank's turn(), one after the other: what a rank leaves in `tensors` and `bytes` the next one finds there, and
  // all have what the last one left.
  virtual void in_turn(const char* what, std::span<const at::Tensor> tensors, std::string& bytes,
                       const std::function<void()>& turn) = 0;

  // Adds to a number that all ranks see, 0 at first, and gives it.
  virtual int64_t count(const std::string& name, int64_t more) = 0;
  // A number for each call of any rank with this name, from 0 on; whoever calls gets the next one.
  int64_t claim(const std::string& name) { return count(name, 1) - 1; }
  // Whoever calls first is believed: gives its bytes to all who call with this name. Some MB at most, and not none.
  virtual std::string settle(const std::string& name, const std::string& bytes) = 0;
  // Nobody asks for these any more.
  virtual void forget(const std::vector<std::string>& names) = 0;

  // Of calls that all ranks make: the same number on each, for names.
  int64_t next_number() { return number_++; }

  // Bytes of all that was given to these calls so far: what the wire carries of a sum is about twice its tensors.
  virtual int64_t bytes() const { return 0; }

  bool any(const char* what, bool mine);  // whether it is so on any rank
  // What rank 0 has, on all.
  std::string told(const char* what, const std::string& mine) { return gather(what, leads() ? mine : "").front(); }
  // Does `work` on every rank, and gives what it gives. Where it throws an Error on one, all throw AgreedError: rank
  // 0's, else that of the first rank that has one, with its number.
  template <class Work>
  auto together(const char* what, Work work);

 private:
  void agree(const char* what, const std::optional<Error>& failure);
  int64_t number_ = 0;
};

std::unique_ptr<Ranks> alone();
// By the environment. Error("config") where it is incomplete; AgreedError where these are not processes of one program
// for one run.
std::unique_ptr<Ranks> open_ranks();
// RANK where WORLD_SIZE says that there are several, else 0. Throws nothing.
int64_t rank_of_environment();
std::unique_ptr<Ranks> make_gloo_ranks(int64_t rank, int64_t size, const std::string& host, int64_t port);

// Items [first, last) of `count` that are this rank's: neighbours, as even as possible.
struct RankShare {
  int64_t first, last;
};
inline RankShare share_of(const Ranks& ranks, int64_t count) {
  return {count * ranks.rank() / ranks.size(), count * (ranks.rank() + 1) / ranks.size()};
}

template <class Work>
auto Ranks::together(const char* what, Work work) {
  if (alone()) return work();
  std::optional<Error> failure;
  const auto attempt = [&](auto run) {
    try {
      run();
    } catch (const Error& error) {
      if (error.kind() == "ranks" || dynamic_cast<const AgreedError*>(&error) != nullptr) throw;
      failure = error;
    }
  };
  if constexpr (std::is_void_v<decltype(work())>) {
    attempt(work);
    agree(what, failure);
  } else {
    std::optional<decltype(work())> result;
    attempt([&] { result.emplace(work()); });
    agree(what, failure);
    return std::move(*result);
  }
}

}  // namespace ucas
