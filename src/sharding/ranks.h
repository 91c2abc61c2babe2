// Ranks: processes that train one policy together. Each samples a shard of the prompts and computes a shard of the
// gradients; all hold the same batch, advantages and weights. Only rank 0 writes. One rank by default. Under torchrun,
// or where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, c10d communicates over Gloo, and over NCCL for
// tensors on a GPU if libucas_cuda.so was built with it. Every call is a collective: all ranks make it, in order.
// `what` names the call. Ranks compare it first, so that ranks which differ in what they do end in an Error that names
// both: Error(ErrorKind::ranks, exit 70), as they do where another rank is gone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ucas {

// The same Error on every rank: rank 0 prints it (cli/engine/speaking.h).
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Where a rank runs, counted among all of them when they join.
struct RankLocation {
  int64_t on_host = 1;        // ranks of this host
  int64_t local = 0;          // this one's number among them
  int64_t sharing_cores = 1;  // of them, those that may run on exactly the same cores
};

class Ranks {
 public:
  using OfRanks = std::span<const std::vector<at::Tensor>>;  // a list for each rank, each maybe empty

  Ranks(int64_t rank, int64_t size) : rank_(rank), size_(size) {}
  virtual ~Ranks() = default;
  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  const RankLocation& place() const { return place_; }
  bool alone() const { return size_ == 1; }
  bool leads() const { return rank_ == 0; }
  // Bytes of all tensors passed to collectives so far. The network carries about two times as many for a sum.
  int64_t bytes() const { return bytes_; }

  // Barrier.
  virtual void barrier(const char* what) = 0;
  // All-gather: the bytes of every rank, in order.
  virtual std::vector<std::string> all_gather(const char* what, const std::string& bytes) = 0;
  // All-reduce in place: the sum over all ranks, bit-identical on each, not bit-identical to a sum in one process.
  virtual void all_reduce(const char* what, std::span<const at::Tensor> tensors) = 0;
  // In place at rank r: the sum over all ranks of the tensors for r. On other ranks their values are then unspecified.
  virtual void reduce(const char* what, OfRanks to) = 0;
  // Reduce-scatter in the order of ranks, the bits of additions in one process: at rank r, sums[i] += to[r][i] of rank
  // 0, then of rank 1, .., of rank contributors - 1. `to` has the same shapes on all ranks; from rank `contributors` on
  // its values are not read. `sums` are like to[r]. f32, contiguous, on one device.
  virtual void add_in_order(const char* what, OfRanks to, std::span<const at::Tensor> sums, int64_t contributors) = 0;
  // In place: what is of rank r becomes r's on all.
  virtual void broadcast(const char* what, OfRanks from) = 0;
  void broadcast(const char* what, std::span<const at::Tensor> tensors, int64_t from);

  // Publishes this rank's error, before it ends, for the others to report. Throws nothing.
  virtual void publish_failure(const std::string& /*text*/) {}

  bool any(const char* what, bool mine);  // whether it is so on any rank
  // Broadcast of rank 0's bytes.
  std::string from_leader(const char* what, const std::string& mine) {
    return all_gather(what, leads() ? mine : "").front();
  }
  // Does `work` on every rank, and gives what it gives. Where it throws an Error on one, all throw AgreedError: rank
  // 0's, else that of the first rank that has one, with its number.
  template <class Work>
  auto together(const char* what, Work work);

 protected:
  RankLocation place_;
  int64_t bytes_ = 0;

 private:
  void agree(const char* what, const std::optional<Error>& failure);
  const int64_t rank_, size_;
};

std::unique_ptr<Ranks> alone();
// By the environment. Error(ErrorKind::config) where it is incomplete; AgreedError where these are not processes of one
// program for one run.
std::unique_ptr<Ranks> open_ranks();
// RANK if WORLD_SIZE is above 1, else 0. Throws nothing.
int64_t rank_of_environment();
std::unique_ptr<Ranks> make_gloo_ranks(int64_t rank, int64_t size, const std::string& host, int64_t port);

// Values as bytes in memory order: what ranks, which run the same program, send each other. Texts and lists are
// preceded by their length.
class BytesWriter {
 public:
  template <class T>
  void part(const T& value) {
    if constexpr (requires { value.data(); }) {
      part(value.size());
      bytes.append(reinterpret_cast<const char*>(value.data()), value.size() * sizeof *value.data());
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  std::string bytes;
};

// Error(ErrorKind::truncated) naming `where` for bytes that are not whole.
class BytesReader {
 public:
  BytesReader(std::string_view bytes, std::string where) : left_(bytes), where_(std::move(where)) {}
  bool at_end() const { return left_.empty(); }
  template <class T>
  void part(T& value) {
    if constexpr (requires { value.resize(1); }) {
      size_t count = 0;
      part(count);
      if (count > left_.size() / sizeof *value.data()) refuse();
      value.resize(count);
      copy(value.data(), count * sizeof *value.data());
    } else {
      copy(&value, sizeof value);
    }
  }

 private:
  void copy(void* to, size_t size);
  [[noreturn]] void refuse() const;
  std::string_view left_;
  const std::string where_;
};

// Items [first, last) of `count` that are this rank's: contiguous, as even as possible.
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
      if (error.kind() == ErrorKind::ranks || dynamic_cast<const AgreedError*>(&error) != nullptr) throw;
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
