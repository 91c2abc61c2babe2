// What offload waits for, on a device that is none: LibTorch's spare device type, whose three streams are lists of
// work. Nothing of it runs before the host waits; then it runs in one of the orders that events allow. Memory that is
// let go serves the next tensor at once, as on a device. Where a wait is left out, some order gives other numbers.
#include <ATen/EmptyTensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "train/optimizer/host_state.h"

namespace ucas::offload_order_tests {  // a folder's tests are compiled together
namespace {

constexpr c10::DeviceType kSpare = c10::DeviceType::PrivateUse1;
enum : int { work, in, out, streams };  // as HostState asks for them
using Wait = std::pair<int, int>;       // of the second stream for the first

// Streams, their events and their memory.
class Lazy {
 public:
  struct Event {
    int of = work;
    std::shared_ptr<bool> passed;
  };

  void reset(uint64_t order, Wait without) {
    drain();
    order_ = order, without_ = without, next_ = in, current = work;
    rng_ = Rng(order, 7);
    waits.clear();
  }
  void queue(std::function<void()> what) { lists_[current].push_back({std::move(what), nullptr}); }
  void record(Event& event, int stream) {
    event = {stream, std::make_shared<bool>(false)};
    lists_[stream].push_back({[passed = event.passed] { *passed = true; }, nullptr});
  }
  void block(const Event& event, int stream) {
    waits.push_back({event.of, stream});
    if (waits.back() != without_) lists_[stream].push_back({[] {}, event.passed});
  }
  void await(int stream) {
    while (!lists_[stream].empty()) run_one();
  }
  void drain() {
    for (int stream = 0; stream < streams; ++stream) await(stream);
  }
  int from_pool() { return std::exchange(next_, next_ == in ? out : in); }

  void* take(size_t bytes) {
    std::vector<void*>& free = free_[bytes];
    if (free.empty()) {
      memory_.push_back(std::make_unique<std::byte[]>(bytes));
      return memory_.back().get();
    }
    void* const last = free.back();
    free.pop_back();
    return last;
  }
  void let_go(void* memory, size_t bytes) { free_[bytes].push_back(memory); }

  int current = work;
  std::vector<Wait> waits;  // asked for since reset()

 private:
  struct Item {
    std::function<void()> what;
    std::shared_ptr<bool> awaits;
  };
  bool can_run(int stream) const {
    return !lists_[stream].empty() && (!lists_[stream].front().awaits || *lists_[stream].front().awaits);
  }
  // The first six orders prefer one stream to another, all that it can; others are random.
  void run_one() {
    std::array<int, streams> order = {work, in, out};
    for (uint64_t i = 0; i < order_ % 6; ++i) std::ranges::next_permutation(order);
    if (order_ >= 6) std::rotate(order.begin(), order.begin() + static_cast<int>(rng_.below(streams)), order.end());
    const auto first = std::ranges::find_if(order, [&](int stream) { return can_run(stream); });
    UCAS_CHECK(first != order.end(), "streams wait for each other");
    const Item item = std::move(lists_[*first].front());
    lists_[*first].pop_front();
    item.what();
  }

  std::array<std::deque<Item>, streams> lists_;
  uint64_t order_ = 0;
  Wait without_;
  int next_ = in;
  Rng rng_{0, 7};
  std::map<size_t, std::vector<void*>> free_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};
Lazy lazy;

struct Memory final : c10::Allocator {
  struct Piece {
    void* begin;
    size_t bytes;
  };
  c10::DataPtr allocate(size_t bytes) override {
    auto* piece = new Piece{lazy.take(bytes), bytes};
    return {piece->begin, piece, &let_go, c10::Device(kSpare, 0)};
  }
  static void let_go(void* context) {
    const std::unique_ptr<Piece> piece(static_cast<Piece*>(context));
    lazy.let_go(piece->begin, piece->bytes);
  }
  void copy_data(void*, const void*, size_t) const override { UCAS_CHECK(false, "copies are queued"); }
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Device device() { return {kSpare, 0}; }
  static c10::Stream stream(int id) { return c10::Stream(c10::Stream::UNSAFE, device(), id); }
  static int of(const c10::Stream& stream) { return static_cast<int>(stream.id()); }
  c10::DeviceType type() const override { return kSpare; }
  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Device getDevice() const override { return device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device) const override { return stream(lazy.current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(lazy.from_pool()); }
  c10::Stream exchangeStream(c10::Stream to) const override { return stream(std::exchange(lazy.current, of(to))); }
  void record(void** event, const c10::Stream& on, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Lazy::Event;
    lazy.record(*static_cast<Lazy::Event*>(*event), of(on));
  }
  void block(void* event, const c10::Stream& on) const override {
    lazy.block(*static_cast<Lazy::Event*>(event), of(on));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Lazy::Event*>(event); }
  void synchronizeStream(const c10::Stream& on) const override { lazy.await(of(on)); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  static Memory memory;
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}
at::Tensor copy(const at::Tensor& from, const at::Tensor& to, bool) {
  const auto plain = [](const at::Tensor& x) {
    UCAS_CHECK(x.is_contiguous(), "expected whole pieces");
    return at::from_blob(x.data_ptr(), x.sizes(), at::TensorOptions().dtype(x.dtype()));
  };
  lazy.queue([from = plain(from), to = plain(to), of_host = from.is_cpu() ? from : at::Tensor()] { to.copy_(from); });
  return to;
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("_copy_from", copy);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
}

// Parameters of some parts each, so that buffers grow while they are in use; masters and moments on the host.
struct Model {
  explicit Model(at::Device device) {
    for (const int64_t n : {256, 256, 256, 512, 1124}) {
      const at::Tensor x = at::arange(n, at::kFloat);
      const auto on_device = [&](const at::Tensor& values) {
        const at::Tensor made = at::empty({n}, values.options().device(device));
        made.copy_(values);
        return made;
      };
      ParameterState p{.parameter = on_device(x), .mean = {x * 0.5, {}}, .square = {x * 0.25, {}}};
      p.parameter.mutable_grad() = on_device(x * 0.125 + static_cast<double>(parameters.size()));
      p.host_master = x * 2;
      p.copy.compute = on_device(at::zeros({n}, at::kBFloat16));
      parameters.push_back(p);
    }
  }
  void update() {
    std::vector<const ParameterState*> list;
    for (const ParameterState& p : parameters) list.push_back(&p);
    HostState(parameters[0].parameter.device(), 2 * kQuantBlock).run(list, change);
  }
  // Besides what it changes, each update writes into memory of its own.
  static void change(const ParameterState& part) {
    const at::Tensor own = at::empty({256}, part.parameter.options());
    const auto all = [&] {
      const int64_t n = part.parameter.numel();
      return [p = part.parameter.mutable_data_ptr<float>(), g = part.parameter.grad().mutable_data_ptr<float>(),
              m = part.mean.values.mutable_data_ptr<float>(), v = part.square.values.mutable_data_ptr<float>(),
              o = own.mutable_data_ptr<float>(), n] {
        std::fill_n(o, 256, 1e9f);
        for (int64_t i = 0; i < n; ++i) m[i] += g[i], v[i] = 2 * v[i] - g[i], p[i] = p[i] * 3 - m[i] + v[i], g[i] = 0;
      };
    }();
    part.parameter.is_cpu() ? all() : lazy.queue(all);
  }
  bool same_as(const Model& other) const {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const ParameterState &a = parameters[i], &b = other.parameters[i];
      if (!a.host_master.equal(b.host_master) || !a.mean.values.equal(b.mean.values) ||
          !a.square.values.equal(b.square.values))
        return false;
    }
    return true;
  }
  std::vector<ParameterState> parameters;
};

constexpr uint64_t kOrders = 40;
constexpr Wait kNone = {streams, streams};

bool right_in(uint64_t order, Wait without, const Model& want) {
  lazy.reset(order, without);
  Model model(c10::Device(kSpare, 0));
  lazy.drain();
  model.update();  // returns when all is on the host
  const bool same = model.same_as(want);
  lazy.drain();
  return same;
}

TEST(offload_order, every_order_of_copies_and_updates_gives_the_numbers_of_the_host) {
  Model want(at::kCPU);
  want.update();
  for (uint64_t order = 0; order < kOrders; ++order) EXPECT_TRUE(right_in(order, kNone, want)) << order;
}

TEST(offload_order, each_wait_is_needed) {
  Model want(at::kCPU);
  want.update();
  right_in(0, kNone, want);
  std::map<Wait, int> asked;
  for (const Wait& wait : lazy.waits) ++asked[wait];
  for (const auto& [wait, name] : std::map<Wait, const char*>{{{work, in}, "memory that the work had before"},
                                                              {{in, work}, "a part that is fetched"},
                                                              {{work, out}, "a part that is updated"},
                                                              {{out, in}, "a buffer that is put back"},
                                                              {{out, work}, "a buffer that is put back and let go"}}) {
    EXPECT_GT(asked[wait], 0) << name;
    int wrong = 0;
    for (uint64_t order = 0; order < kOrders; ++order) wrong += right_in(order, wait, want) ? 0 : 1;
    EXPECT_GT(wrong, 0) << name;
  }
}

}  // namespace
}  // namespace ucas::offload_order_tests
