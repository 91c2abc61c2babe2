#include "sharding/weight_group.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/str.h"
#include "model/tensor/cuda_library.h"
#include "model/tensor/stream.h"
#include "sharding/ranks_device.h"

namespace ucas {

namespace {

constexpr std::chrono::milliseconds kLook{10};

std::string fresh_name() {
  std::random_device random;
  return str("ucas-", random(), "-", random());
}

// Does `work` in a thread of its own. Where it does not come back in time, or need not, the thread is left to itself:
// nothing that it waits for can be ended from here.
void apart(std::function<void()> work, std::chrono::milliseconds patience, const WeightGroup::GivenUp& given_up) {
  struct State {
    std::mutex guard;
    std::condition_variable wake;
    bool done = false;
    std::exception_ptr failed;
  };
  const auto state = std::make_shared<State>();
  std::thread([state, work = std::move(work)] {
    std::exception_ptr failed;
    try {
      work();
    } catch (...) {
      failed = std::current_exception();
    }
    const std::lock_guard lock(state->guard);
    state->failed = failed;
    state->done = true;
    state->wake.notify_all();
  }).detach();
  const auto until = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(state->guard);
  while (!state->wake.wait_for(lock, kLook, [&] { return state->done; })) {
    if (given_up()) throw std::runtime_error("given up");
    if (std::chrono::steady_clock::now() > until) {
      throw std::runtime_error(str("no one came within ", patience.count() / 1000.0, " s"));
    }
  }
  if (state->failed) std::rethrow_exception(state->failed);
}

}  // namespace

struct WeightGroup::Impl {
  Options options;
  std::string name = fresh_name();
  std::chrono::milliseconds patience{0};
  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::Backend> group;

  bool on_gpu() const { return options.backend == "nccl"; }

  void open() {
    // torch.distributed's names: of the caller's store, of the new group, of the device that a backend serves.
    c10::intrusive_ptr<c10d::Store> keys = store;
    for (const std::string& prefix : {name, name + "/", std::string(on_gpu() ? "cuda/" : "cpu/")}) {
      keys = c10::make_intrusive<c10d::PrefixStore>(prefix, keys);
    }
    if (on_gpu()) return open_nccl(keys);
    group = open_gloo(keys, {.rank = 0, .size = options.size, .address = options.address, .patience = patience});
  }
  void open_nccl(const c10::intrusive_ptr<c10d::Store>& keys) {
    const auto make = reinterpret_cast<MakeDeviceGroup>(cuda_symbol(kMakeDeviceGroup));
    if (make == nullptr) throw std::runtime_error("this build has no NCCL (docs/gpu.md)");
    make(&group, keys, 0, options.size, patience);
  }

  void broadcast(const std::vector<at::Tensor>& tensors) {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& tensor : tensors) {
      std::vector<at::Tensor> one{tensor};
      group->broadcast(one)->wait();
    }
    if (on_gpu()) wait_for(at::Device(options.device));
  }
};

WeightGroup::WeightGroup(const Options& options) : impl_(std::make_shared<Impl>()) {
  impl_->options = options;
  impl_->patience = std::chrono::milliseconds(static_cast<int64_t>(options.patience * 1000));
  c10d::TCPStoreOptions store;
  store.port = 0;
  store.isServer = true;
  store.waitWorkers = false;
  store.timeout = impl_->patience;
  impl_->store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store);
}

WeightGroup::~WeightGroup() = default;

const std::string& WeightGroup::name() const { return impl_->name; }
int64_t WeightGroup::port() const { return impl_->store->getPort(); }

void WeightGroup::join(const GivenUp& given_up) {
  apart([impl = impl_] { impl->open(); }, impl_->patience, given_up);
}

void WeightGroup::broadcast(std::span<const at::Tensor> tensors, const GivenUp& given_up) {
  if (impl_->on_gpu()) wait_for(at::Device(impl_->options.device));
  apart([impl = impl_, list = std::vector<at::Tensor>(tensors.begin(), tensors.end())] { impl->broadcast(list); },
        impl_->patience, given_up);
}

}  // namespace ucas
