#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/str.h"
#include "train/ranks.h"
#include "train/ranks_device.h"

namespace ucas {

namespace {

constexpr int64_t kSmall = 1 << 20;            // elements
constexpr std::chrono::minutes kPatience{30};  // for the slowest rank: a step's sampling may be uneven

class GlooRanks final : public Ranks {
 public:
  GlooRanks(int64_t rank, int64_t size, const std::string& host, int64_t port) : rank_(rank), size_(size) {
    called("joining the other ranks", [&] {
      c10d::TCPStoreOptions store;
      store.port = static_cast<uint16_t>(port);
      // torchrun's agent serves the store already, under its own process.
      const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
      store.isServer = rank == 0 && !(agent != nullptr && std::strcmp(agent, "True") == 0);
      store.waitWorkers = false;
      store.timeout = std::chrono::minutes(5);
      auto options = c10d::ProcessGroupGloo::Options::create(kPatience);
      const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
      options->devices.push_back(interface != nullptr ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : is_local(host)     ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                                      : c10d::ProcessGroupGloo::createDefaultDevice());
      auto shared = c10::make_intrusive<c10d::TCPStore>(host, store);
      group_ =
          c10::make_intrusive<c10d::ProcessGroupGloo>(shared, static_cast<int>(rank), static_cast<int>(size), options);
      store_ = shared;
    });
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  int64_t bytes() const override { return bytes_; }

  std::vector<std::string> gather(const std::string& bytes) override {
    at::Tensor length = at::empty({1}, at::kLong);
    length.data_ptr<int64_t>()[0] = static_cast<int64_t>(bytes.size());
    const std::vector<at::Tensor> lengths = all_of(length);
    int64_t longest = 1;
    for (const at::Tensor& n : lengths) longest = std::max(longest, n.item<int64_t>());
    bytes_ += static_cast<int64_t>(bytes.size());
    at::Tensor mine = at::empty({longest}, at::kByte);
    std::memcpy(mine.data_ptr(), bytes.data(), bytes.size());
    std::vector<std::string> all;
    const std::vector<at::Tensor> parts = all_of(mine);
    for (size_t r = 0; r < parts.size(); ++r) {
      all.emplace_back(static_cast<const char*>(parts[r].data_ptr()), static_cast<size_t>(lengths[r].item<int64_t>()));
    }
    return all;
  }

  void add_up(std::span<const at::Tensor> tensors) override {
    each_large(tensors, [&](std::vector<at::Tensor>& one) {
      called("summing gradients", [&] { group_of(one).allreduce(one)->wait(); });
    });
  }

  void reduce(std::span<const at::Tensor> tensors, int64_t to) override {
    c10d::ReduceOptions options;
    options.rootRank = to;
    each_large(tensors, [&](std::vector<at::Tensor>& one) {
      called("summing gradients", [&] { group_of(one).reduce(one, options)->wait(); });
    });
  }

  void hand(std::span<const at::Tensor> tensors, int64_t from, int64_t to) override {
    each_large(tensors, [&](std::vector<at::Tensor>& one) {
      if (rank_ == from) pass_on(one, to);
      if (rank_ == to) take_over(one, from);
    });
  }

  void broadcast(std::span<const at::Tensor> tensors, int64_t from) override {
    c10d::BroadcastOptions options;
    options.rootRank = from;
    each_large(tensors, [&](std::vector<at::Tensor>& one) {
      called("handing out weights", [&] { group_of(one).broadcast(one, options)->wait(); });
    });
  }

  void in_turn(std::span<const at::Tensor> tensors, std::string& bytes, const std::function<void()>& turn) override {
    if (rank_ > 0) {
      each_large(tensors, [&](std::vector<at::Tensor>& one) { take_over(one, rank_ - 1); });
      bytes = receive_bytes(rank_ - 1);
    }
    turn();
    if (rank_ + 1 < size_) {
      each_large(tensors, [&](std::vector<at::Tensor>& one) { pass_on(one, rank_ + 1); });
      send_bytes(bytes, rank_ + 1);
    }
    broadcast(tensors, size_ - 1);
    bytes = gather(rank_ + 1 == size_ ? bytes : "").back();
  }

  int64_t count(const std::string& name, int64_t more) override {
    int64_t sum = 0;
    called("claiming a prompt", [&] { sum = store_->add("ucas/" + name, more); });
    return sum;
  }
  std::string settle(const std::string& name, const std::string& bytes) override {
    std::string settled;
    called("moving responses", [&] { settled = store_->compareSet("ucas/" + name, "", bytes); });
    if (settled == bytes) bytes_ += static_cast<int64_t>(bytes.size());
    return settled;
  }
  void forget(const std::vector<std::string>& names) override {
    called("moving responses", [&] {
      for (const std::string& name : names) store_->deleteKey("ucas/" + name);
    });
  }

 private:
  // A call costs its latency: small tensors of one type travel side by side. All lie on one device.
  template <class Send>
  void each_large(std::span<const at::Tensor> tensors, Send send) {
    for (const at::Tensor& tensor : tensors) bytes_ += static_cast<int64_t>(tensor.nbytes());
    std::vector<at::Tensor> small;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.numel() < kSmall && (small.empty() || tensor.scalar_type() == small[0].scalar_type())) {
        small.push_back(tensor);
        continue;
      }
      std::vector<at::Tensor> one{carried(tensor)};
      send(one);
      if (!one[0].is_same(tensor)) tensor.copy_(one[0]);
    }
    if (small.empty()) return;
    std::vector<at::Tensor> flat;
    for (const at::Tensor& tensor : small) flat.push_back(tensor.reshape({-1}));
    std::vector<at::Tensor> one{carried(at::cat(flat))};
    send(one);
    int64_t first = 0;
    for (at::Tensor& tensor : small) {
      tensor.copy_(one[0].narrow(0, first, tensor.numel()).view(tensor.sizes()));
      first += tensor.numel();
    }
  }

  // What is sent and received for it: itself, or where only the host has a way to the others, a copy there.
  at::Tensor carried(const at::Tensor& tensor) {
    if (tensor.is_cpu()) return tensor;
    if (!asked_for_device_) {
      asked_for_device_ = true;
      called("joining the other ranks' devices",
             [&] { device_group_ = make_device_group(store_, rank_, size_, kPatience); });
    }
    return device_group_ ? tensor : tensor.cpu();
  }
  c10d::Backend& group_of(const std::vector<at::Tensor>& tensors) const {
    return tensors[0].is_cpu() ? static_cast<c10d::Backend&>(*group_) : *device_group_;
  }
  void pass_on(std::vector<at::Tensor>& one, int64_t to) {
    called("passing gradients on", [&] { group_of(one).send(one, static_cast<int>(to), 0)->wait(); });
  }
  void take_over(std::vector<at::Tensor>& one, int64_t from) {
    called("waiting for gradients", [&] { group_of(one).recv(one, static_cast<int>(from), 0)->wait(); });
  }

  static bool is_local(const std::string& host) { return host == "localhost" || host == "127.0.0.1" || host == "::1"; }

  template <class Call>
  void called(const char* what, Call call) const {
    try {
      call();
    } catch (const std::exception& e) {
      const std::string text = e.what();
      throw Error(
          "ranks",
          str("rank ", rank_, " of ", size_, ": ", what, " failed: ", printable(text.substr(0, text.find('\n')), 300),
              "; has another rank ended? its message says why"),
          kNumeric);
    }
  }

  std::vector<at::Tensor> all_of(const at::Tensor& mine) {
    std::vector<std::vector<at::Tensor>> out(1);
    for (int64_t r = 0; r < size_; ++r) out[0].push_back(at::empty(mine.sizes(), mine.options()));
    std::vector<at::Tensor> in{mine};
    called("exchanging results", [&] { group_->allgather(out, in)->wait(); });
    return out[0];
  }

  void send(const at::Tensor& tensor, int64_t to) {
    bytes_ += static_cast<int64_t>(tensor.nbytes());
    std::vector<at::Tensor> one{tensor};
    called("passing gradients on", [&] { group_->send(one, static_cast<int>(to), 0)->wait(); });
  }
  void receive(const at::Tensor& tensor, int64_t from) {
    std::vector<at::Tensor> one{tensor};
    called("waiting for gradients", [&] { group_->recv(one, static_cast<int>(from), 0)->wait(); });
  }
  void send_bytes(const std::string& bytes, int64_t to) {
    at::Tensor length = at::empty({1}, at::kLong),
               content = at::empty({static_cast<int64_t>(bytes.size()) + 1}, at::kByte);
    length.data_ptr<int64_t>()[0] = content.numel();
    std::memcpy(content.data_ptr(), bytes.c_str(), bytes.size() + 1);
    send(length, to);
    send(content, to);
  }
  std::string receive_bytes(int64_t from) {
    const at::Tensor length = at::empty({1}, at::kLong);
    receive(length, from);
    const at::Tensor content = at::empty({length.item<int64_t>()}, at::kByte);
    receive(content, from);
    return {static_cast<const char*>(content.data_ptr()), static_cast<size_t>(content.numel() - 1)};
  }

  const int64_t rank_, size_;
  int64_t bytes_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  c10::intrusive_ptr<c10d::Backend> device_group_;  // of tensors that do not lie on the CPU, once there were any
  bool asked_for_device_ = false;
};

}  // namespace

std::unique_ptr<Ranks> make_gloo_ranks(int64_t rank, int64_t size, const std::string& host, int64_t port) {
  return std::make_unique<GlooRanks>(rank, size, host, port);
}

}  // namespace ucas
