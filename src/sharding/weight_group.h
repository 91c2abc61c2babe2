// A group of c10d by which a trainer broadcasts weights to servers of another program. This process is rank 0 and has
// the store; the others join by the group's name, as SGLang's init_custom_process_group does: a PrefixStore of the name
// around a TCPStore, then PyTorch's own prefixes of a new group and of its device. By NCCL for tensors on a GPU, by
// Gloo for those on the CPU. Fed by rollout/served_rollout, which tells the servers over HTTP what comes.
// Threads: one caller. A call has a thread of its own, which is left to itself where others do not come.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ucas {

class WeightGroup {
 public:
  struct Options {
    std::string backend;         // "nccl" or "gloo", as PyTorch names them
    std::string address;         // of this host, as the others reach it
    int64_t size = 1;            // ranks, this one included
    double patience = 300;       // seconds that a call may wait for the others
    std::string device = "cpu";  // of the tensors
  };
  // Opens the store on a free port, under a name that no group had before; waits for no one.
  explicit WeightGroup(const Options& options);
  ~WeightGroup();
  WeightGroup(const WeightGroup&) = delete;
  WeightGroup& operator=(const WeightGroup&) = delete;

  const std::string& name() const;
  int64_t port() const;

  // std::runtime_error where the others do not come in time, are gone, or `given_up` says that they will not come;
  // then the group is of no use. With NCCL the others are first waited for in the first broadcast.
  using GivenUp = std::function<bool()>;
  void join(const GivenUp& given_up);
  // One after another, each whole: what lies here goes to all.
  void broadcast(std::span<const at::Tensor> tensors, const GivenUp& given_up);

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;  // with the threads that were left to themselves
};

}  // namespace ucas
