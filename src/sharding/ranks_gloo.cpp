#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "model/tensor/cuda_library.h"
#include "sharding/heartbeat.h"
#include "sharding/ranks.h"
#include "train/update/config.h"

namespace ucas {

namespace {

constexpr int64_t kSmall = 1 << 20;                // elements
constexpr int64_t kUnderWay = int64_t{256} << 20;  // bytes that several roots send at once
constexpr int64_t kCallsAtOnce = 4;                // of them, by threads of Gloo
constexpr std::chrono::minutes kPatience{30};      // for the slowest rank: a step's sampling may be uneven
// For what a device was given: no kernel of NCCL waits for a slow rank, as all begin a call together. The line comes
// before NCCL's own watchdog, which ends the process by a signal.
constexpr std::chrono::seconds kDevicePatience{180}, kDeviceSaid{150};

enum class Kind : int64_t { barrier, all_gather, all_reduce, reduce, broadcast, add_in_order };

// The next collective of a rank, sent before it begins.
struct Header {
  Kind kind = Kind::barrier;
  int64_t number = 0, bytes = -1;
  char what[64] = {};
  bool operator==(const Header&) const = default;
};

at::Tensor tensor_of(const void* data, size_t bytes) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(bytes)}, at::kByte);
  std::memcpy(tensor.data_ptr(), data, bytes);
  return tensor;
}

int64_t bytes_in(std::span<const at::Tensor> tensors) {
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += static_cast<int64_t>(tensor.nbytes());
  return sum;
}
int64_t bytes_in(Ranks::OfRanks lists) {
  int64_t sum = 0;
  for (const std::vector<at::Tensor>& list : lists) sum += bytes_in(list);
  return sum;
}

int64_t elements_in(std::span<const at::Tensor> tensors) {
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += tensor.numel();
  return sum;
}
const at::Tensor& any_of(Ranks::OfRanks lists) {
  return std::ranges::find_if(lists, [](const auto& list) { return !list.empty(); })->front();
}

// Some elements of concatenated tensors, up to the last one.
struct Elements {
  int64_t first = 0, most = 0;
  int64_t among(int64_t all) const { return std::clamp<int64_t>(all - first, 0, most); }
};
// use(flat part, which tensor it is of, where it begins there) for what of each tensor is among them.
template <class Use>
void each_part(std::span<const at::Tensor> tensors, const Elements& some, Use use) {
  int64_t before = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t n = tensors[i].numel(), begin = std::max<int64_t>(some.first - before, 0),
                  end = std::min(some.first + some.most - before, n);
    if (begin < end) use(tensors[i].view({-1}).narrow(0, begin, end - begin), i, begin);
    before += n;
  }
}

class GlooRanks final : public Ranks {
 public:
  GlooRanks(int64_t rank, int64_t size, const std::string& host, int64_t port)
      : Ranks(rank, size), fault_(str("collective@", rank)) {
    called("joining the other ranks", [&] {
      const Rendezvous met = join_ranks(rank, size, host, port, kPatience);
      heartbeat_ = std::make_unique<Heartbeat>(met.beats, rank, size, heartbeat_patience());
      store_ = met.store;
      place_ = met.place;
      open_group(met.address);
    });
  }

  void publish_failure(const std::string& text) override { heartbeat_->publish_failure(text); }

  void barrier(const char* what) override { begin(Kind::barrier, what, -1); }

  std::vector<std::string> all_gather(const char* what, const std::string& bytes) override {
    const std::vector<Header> headers = begin(Kind::all_gather, what, static_cast<int64_t>(bytes.size()));
    int64_t longest = 1;
    for (const Header& header : headers) longest = std::max(longest, header.bytes);
    bytes_ += static_cast<int64_t>(bytes.size());
    at::Tensor mine = at::empty({longest}, at::kByte);
    std::memcpy(mine.data_ptr(), bytes.data(), bytes.size());
    std::vector<std::string> all;
    const std::vector<at::Tensor> parts = all_of(what, mine);
    for (size_t r = 0; r < parts.size(); ++r) {
      all.emplace_back(static_cast<const char*>(parts[r].data_ptr()), static_cast<size_t>(headers[r].bytes));
    }
    return all;
  }

  void all_reduce(const char* what, std::span<const at::Tensor> tensors) override {
    begin(Kind::all_reduce, what, bytes_in(tensors));
    each_large(tensors, [&](std::vector<at::Tensor>& one) {
      called(what, [&] { tracked(what, one[0], group_of(one).allreduce(one))->wait(); });
    });
  }

  void reduce(const char* what, OfRanks to) override {
    begin(Kind::reduce, what, bytes_in(to));
    of_all_roots(what, to, [this](std::vector<at::Tensor>& one, int64_t root) {
      c10d::ReduceOptions options;
      options.rootRank = root;
      return group_of(one).reduce(one, options);
    });
  }

  void add_in_order(const char* what, OfRanks to, std::span<const at::Tensor> sums, int64_t contributors) override {
    const at::NoGradGuard no_grad;
    begin(Kind::add_in_order, what, bytes_in(to));
    // All-to-all of so many elements at a time that the buffers stay small.
    int64_t longest = 0;
    for (const std::vector<at::Tensor>& list : to) longest = std::max(longest, elements_in(list));
    const int64_t most = std::max<int64_t>(kExchangeElements / size(), 1);
    for (int64_t first = 0; first < longest; first += most)
      add_some_in_order(what, to, sums, contributors, {first, most});
  }

  using Ranks::broadcast;
  void broadcast(const char* what, OfRanks from) override {
    begin(Kind::broadcast, what, bytes_in(from));
    of_all_roots(what, from, [this](std::vector<at::Tensor>& one, int64_t root) {
      c10d::BroadcastOptions options;
      options.rootRank = root;
      return group_of(one).broadcast(one, options);
    });
  }

 private:
  // By the interface that GLOO_SOCKET_IFNAME names, else by that of this host's `address`.
  void open_group(const std::string& address) {
    auto options = c10d::ProcessGroupGloo::Options::create(kPatience);
    options->threads = static_cast<int>(std::clamp<int64_t>(size(), 2, kCallsAtOnce));
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    options->devices.push_back(interface != nullptr ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                                    : c10d::ProcessGroupGloo::createDeviceForHostname(address));
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, static_cast<int>(rank()), static_cast<int>(size()),
                                                         options);
  }

  // These elements of each owner's list.
  void add_some_in_order(const char* what, OfRanks to, std::span<const at::Tensor> sums, int64_t contributors,
                         const Elements& some) {
    const auto self = static_cast<size_t>(rank()), n = static_cast<size_t>(contributors);
    std::vector<int64_t> sent(to.size()), received(to.size());
    int64_t all_sent = 0, all_received = 0;
    for (size_t r = 0; r < to.size(); ++r) {
      if (r == self) continue;
      if (self < n) all_sent += sent[r] = some.among(elements_in(to[r]));
      if (r < n) all_received += received[r] = some.among(elements_in(to[self]));
    }
    const at::TensorOptions options = any_of(to).options().requires_grad(false);
    const at::Tensor out = at::empty({all_sent}, options), in = at::empty({all_received}, options);
    int64_t at = 0;
    for (size_t r = 0; r < to.size(); ++r) {
      if (sent[r] == 0) continue;
      each_part(to[r], some, [&](const at::Tensor& part, size_t, int64_t) {
        out.narrow(0, at, part.numel()).copy_(part);
        at += part.numel();
      });
    }
    bytes_ += static_cast<int64_t>(out.nbytes());
    at::Tensor carried_out = carried(out), carried_in = carried(in);
    called(what, [&] {
      tracked(what, carried_out, group_of({carried_out}).alltoall_base(carried_in, carried_out, received, sent))
          ->wait();
    });
    if (!carried_in.is_same(in)) in.copy_(carried_in);
    at = 0;
    for (size_t r = 0; r < n; ++r) {
      each_part(sums, some, [&](const at::Tensor& sum, size_t i, int64_t first) {
        const int64_t count = sum.numel();
        sum.add_(r == self ? to[self][i].view({-1}).narrow(0, first, count) : in.narrow(0, at, count));
        if (r != self) at += count;
      });
    }
  }

  // What travels in one call, and what it is of.
  struct Load {
    std::vector<at::Tensor> of, one;
    c10::intrusive_ptr<c10d::Work> work = {};
  };
  // A call costs its latency: small tensors of one type share a call. All are on one device.
  static std::vector<Load> loads_of(std::span<const at::Tensor> tensors) {
    std::vector<Load> loads;
    Load small;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.numel() < kSmall && (small.of.empty() || tensor.scalar_type() == small.of[0].scalar_type())) {
        small.of.push_back(tensor);
      } else {
        loads.push_back({.of = {tensor}});
      }
    }
    if (!small.of.empty()) loads.push_back(std::move(small));
    return loads;
  }
  void pack(Load& load) {
    if (load.of.size() == 1 && load.of[0].is_contiguous()) {
      load.one = {carried(load.of[0])};
    } else {
      std::vector<at::Tensor> flat;
      for (const at::Tensor& tensor : load.of) flat.push_back(tensor.reshape({-1}));
      load.one = {carried(at::cat(flat))};
    }
    bytes_ += static_cast<int64_t>(load.one[0].nbytes());
  }
  static void put_down(const Load& load) {
    int64_t first = 0;
    for (const at::Tensor& tensor : load.of) {
      if (load.one[0].is_same(tensor)) return;
      tensor.copy_(load.one[0].view({-1}).narrow(0, first, tensor.numel()).view(tensor.sizes()));
      first += tensor.numel();
    }
  }

  template <class Send>
  void each_large(std::span<const at::Tensor> tensors, Send send) {
    for (Load& load : loads_of(tensors)) {
      pack(load);
      send(load.one);
      put_down(load);
    }
  }

  // start(tensor, root) for the list of every root, some at once: one root's call uses the links of some ranks alone,
  // and one way. All ranks start them in the same order.
  template <class Start>
  void of_all_roots(const char* what, OfRanks lists, Start start) {
    std::vector<std::vector<Load>> loads;
    for (const std::vector<at::Tensor>& list : lists) loads.push_back(loads_of(list));
    std::deque<Load> active;
    int64_t bytes = 0;
    const auto land = [&] {
      Load& load = active.front();
      called(what, [&] { load.work->wait(); });
      put_down(load);
      bytes -= static_cast<int64_t>(load.one[0].nbytes());
      active.pop_front();
    };
    bool more = true;
    for (size_t i = 0; more; ++i) {
      more = false;
      for (size_t root = 0; root < loads.size(); ++root) {
        if (i >= loads[root].size()) continue;
        more = true;
        Load& load = active.emplace_back(std::move(loads[root][i]));
        pack(load);
        called(what, [&] { load.work = tracked(what, load.one[0], start(load.one, static_cast<int64_t>(root))); });
        bytes += static_cast<int64_t>(load.one[0].nbytes());
        while (bytes > kUnderWay) land();
      }
    }
    while (!active.empty()) land();
  }

  // The tensor that is sent and received: `tensor`, or a copy on the host if only the host is connected.
  at::Tensor carried(const at::Tensor& tensor) {
    if (tensor.is_cpu()) return tensor;
    if (!asked_for_device_) {
      asked_for_device_ = true;
      called("joining the other ranks' devices", [&] {
        const char* wanted = std::getenv("UCAS_NCCL");  // off: by the host, as where NCCL cannot go
        const bool off = wanted != nullptr && std::string_view(wanted) == "off";
        const auto make = reinterpret_cast<MakeDeviceGroup>(off ? nullptr : cuda_symbol(kMakeDeviceGroup));
        agree_on_nccl(make != nullptr);
        if (make == nullptr) return;
        make(&device_, c10::make_intrusive<c10d::PrefixStore>("nccl", store_), rank(), size(), kDevicePatience);
        heartbeat_->watch([calls = device_calls_] { return calls->overdue(); });
      });
    }
    return device_.group ? tensor : tensor.cpu();
  }
  // All are in the same call, with a tensor of a device each.
  void agree_on_nccl(bool here) {
    std::vector<std::string> with, without;
    for (const at::Tensor& part : all_of("asking for NCCL", tensor_of(&here, sizeof here)))
      (*static_cast<const bool*>(part.const_data_ptr()) ? with : without).push_back(str(with.size() + without.size()));
    if (!with.empty() && !without.empty()) {
      throw Error(ErrorKind::ranks,
                  str("ranks ", join(with, ", "), " exchange by NCCL, and ranks ", join(without, ", "),
                      " have none (built without nccl.h, or UCAS_NCCL=off); use one build and environment on all"));
    }
    if (!here && leads()) {
      warn(
          "no NCCL (nccl.h was not next to torch at configure, or UCAS_NCCL=off): GPUs communicate through their "
          "hosts, many times slower");
    }
  }
  // What a device was given is looked after until it is over.
  c10::intrusive_ptr<c10d::Work> tracked(const char* what, const at::Tensor& of, c10::intrusive_ptr<c10d::Work> work) {
    if (!of.is_cpu()) device_calls_->add(calls_, what, work);
    return work;
  }
  c10d::Backend& group_of(const std::vector<at::Tensor>& tensors) const {
    return tensors[0].is_cpu() ? *group_ : *device_.group;
  }

  template <class Call>
  void called(const char* what, Call call) const {
    try {
      call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      const std::string text = e.what(), known = heartbeat_ ? heartbeat_->reason() : "",
                        own = printable(text.substr(0, text.find('\n')), 300);
      const std::string why = known.starts_with("another") ? known
                                                           : str(own, known.empty() ? "" : "; ", known,
                                                                 "; if another rank ended, its message has the reason");
      throw Error(ErrorKind::ranks, str("rank ", rank(), " of ", size(), ": ", what, " failed: ", why), kNumeric);
    }
  }

  // What all are about to do; Error where it is not the same.
  std::vector<Header> begin(Kind kind, const char* what, int64_t bytes) {
    fault_point(fault_.c_str());
    heartbeat_->begins(calls_ + 1, what);
    Header mine{kind, ++calls_, bytes};
    std::strncpy(mine.what, what, sizeof mine.what - 1);
    std::vector<Header> headers;
    for (const at::Tensor& part : all_of(what, tensor_of(&mine, sizeof mine))) {
      std::memcpy(&headers.emplace_back(), part.const_data_ptr(), sizeof mine);
    }
    const bool all = std::ranges::all_of(headers, [&](Header header) {
      if (kind == Kind::all_gather) header.bytes = mine.bytes;  // each has its own
      return header == mine;
    });
    if (all) return headers;
    std::vector<std::string> said;
    for (size_t r = 0; r < headers.size(); ++r) {
      const Header& h = headers[r];
      said.push_back(str("rank ", r, " is at call ", h.number, ", ", printable(h.what, sizeof h.what),
                         h.bytes < 0 ? "" : str(" of ", h.bytes, " bytes")));
    }
    throw Error(ErrorKind::ranks,
                str("rank ", rank(), " of ", size(), ": the ranks do not do the same: ", join(said, "; "),
                    " (a bug in ucas; please report it with the command)"),
                kNumeric);
  }

  std::vector<at::Tensor> all_of(const char* what, const at::Tensor& mine) {
    std::vector<std::vector<at::Tensor>> out(1);
    for (int64_t r = 0; r < size(); ++r) out[0].push_back(at::empty_like(mine));
    std::vector<at::Tensor> in{mine};
    called(what, [&] { group_->allgather(out, in)->wait(); });
    return out[0];
  }

  int64_t calls_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::Backend> group_;
  bool asked_for_device_ = false;
  const std::shared_ptr<DeviceCalls> device_calls_ = std::make_shared<DeviceCalls>(kDeviceSaid);
  const std::string fault_;  // for tests (base/files/file.h): the k-th one of a rank
  std::unique_ptr<Heartbeat> heartbeat_;
  DeviceGroup device_;  // of tensors that are not on the CPU, made for the first one
};

}  // namespace

std::unique_ptr<Ranks> make_gloo_ranks(int64_t rank, int64_t size, const std::string& host, int64_t port) {
  return std::make_unique<GlooRanks>(rank, size, host, port);
}

}  // namespace ucas
