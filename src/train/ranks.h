// Several processes that train one policy together: each samples a share of the prompts and computes a share of the
// gradients, and all of them hold the same batch, the same advantages and the same weights. Rank 0 alone writes.
// Alone by default. Under torchrun, or whatever sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, PyTorch's own
// engine carries the bytes: c10d over Gloo; for tensors of CUDA devices see train/ranks_device.h.
// Every call but hand() and those with a name is made by all ranks, in order. Error("ranks", exit 70) where another one
// is gone. Threads: one caller.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ucas {

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }

  // The bytes of every rank, in order.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  // In place: their sum over all ranks, the same bits on each, yet other bits than a sum in one process.
  virtual void add_up(std::span<const at::Tensor> tensors) = 0;
  // In place at rank `to`: their sum over all ranks. What the others' are then is not said.
  virtual void reduce(std::span<const at::Tensor> tensors, int64_t to) = 0;
  // From one rank to another, in place; these two alone call.
  virtual void hand(std::span<const at::Tensor> tensors, int64_t from, int64_t to) = 0;
  // In place: what rank `from` has.
  virtual void broadcast(std::span<const at::Tensor> tensors, int64_t from) = 0;
  // Each rank's turn(), one after the other: what a rank leaves in `tensors` and `bytes` the next one finds there, and
  // all have what the last one left.
  virtual void in_turn(std::span<const at::Tensor> tensors, std::string& bytes, const std::function<void()>& turn) = 0;

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

  void wait_for_all() { gather(""); }
  bool any(bool mine);  // whether it is so on any rank

 private:
  int64_t number_ = 0;
};

std::unique_ptr<Ranks> alone();
// By the environment. Error("config") where it is incomplete.
std::unique_ptr<Ranks> open_ranks();
std::unique_ptr<Ranks> make_gloo_ranks(int64_t rank, int64_t size, const std::string& host, int64_t port);

// Items [first, last) of `count` that are this rank's: neighbours, as even as possible.
struct RankShare {
  int64_t first, last;
};
inline RankShare share_of(const Ranks& ranks, int64_t count) {
  return {count * ranks.rank() / ranks.size(), count * (ranks.rank() + 1) / ranks.size()};
}

}  // namespace ucas
