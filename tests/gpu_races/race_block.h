// A thread block whose every lane is a thread (kernels/gpu/thread_block.h), for ThreadSanitizer: what one lane reads of
// another without a barrier between them is a race that it reports. Asynchronous copies are made when they are asked
// for, or as late as they may be; shared memory begins as NaN; blocks come in reverse order. `Broken` leaves out one
// thing that a device does, which has to be found.
#pragma once

#include <pthread.h>

#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/gpu/thread_block.h"

namespace ucas::gpu {

enum class Broken { nothing, warp_barrier, block_barrier, copies };
enum class Copies { early, late };

struct RaceWay {
  Broken broken = Broken::nothing;
  Copies copies = Copies::early;
};

// ThreadSanitizer knows pthread's barriers.
class Barrier {
 public:
  explicit Barrier(unsigned threads) { ::pthread_barrier_init(&barrier_, nullptr, threads); }
  ~Barrier() { ::pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  void wait() { ::pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

constexpr int kWords = 64;  // of 8 bytes: room for what a lane hands to another

// What the lanes of a block share.
struct RaceShared {
  RaceShared(int threads, int bytes)
      : block(static_cast<unsigned>(threads)),
        memory(static_cast<size_t>((bytes + 15) / 16 + 1), Floatx4{{NAN, NAN, NAN, NAN}}),
        of_lane(static_cast<size_t>(threads * kWords)),
        of_warp(size_t{32} * kWords),
        threads(threads) {
    for (int warp = 0; warp < threads / 32; ++warp) warps.push_back(std::make_unique<Barrier>(32));
  }
  Barrier block;
  std::vector<std::unique_ptr<Barrier>> warps;
  std::vector<Floatx4> memory;
  std::vector<uint64_t> of_lane, of_warp;
  const int threads;
};

// One lane's view of it.
class RaceBlock {
 public:
  template <class T>
  struct Local {
    T value{};
    T& operator[](int) { return value; }
  };

  RaceBlock(RaceShared& shared, const RaceWay& way, int lane, const Grid& at)
      : x(at.x), y(at.y), z(at.z), shared_(shared), way_(way), lane_(lane) {}

  template <class F>
  void each(F f) {
    f(lane_);
    way_.broken == Broken::block_barrier ? warp_barrier() : shared_.block.wait();
  }
  template <class F>
  void each_of_warp(F f) {
    f(lane_);
    if (way_.broken != Broken::warp_barrier) warp_barrier();
  }
  template <class F, class Op>
  auto reduce(F f, Op op) {
    using T = decltype(f(0));
    const T value = over_warp<T>(f(lane_), op);
    T* of = reinterpret_cast<T*>(shared_.of_warp.data());
    if (lane_ % 32 == 0) of[lane_ / 32] = value;
    shared_.block.wait();
    T total = of[0];
    for (int warp = 1; warp < shared_.threads / 32; ++warp) total = op(total, of[warp]);
    shared_.block.wait();
    return total;
  }
  template <class F>
  auto sum(F f) {
    return reduce(f, [](const auto& a, const auto& b) { return a + b; });
  }
  template <class F, class Op, class T>
  void reduce_of_warp(F f, Op op, Local<T>& to) {
    to.value = over_warp<T>(f(lane_), op);
  }
  template <class T>
  T* shared(int offset = 0) {
    return reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(shared_.memory.data()) + offset);
  }

  void fetch(Bf16* to, const Bf16* from, int bytes) {
    if (way_.copies == Copies::early) return copy({to, from, bytes});
    open_.push_back({to, from, bytes});
  }
  void end_bundle() { bundles_.push_back(std::exchange(open_, {})); }
  template <int kLater>
  void await() {
    const size_t left = kLater + (way_.broken == Broken::copies ? 1 : 0);
    for (; bundles_.size() > left; bundles_.pop_front()) {
      for (const Copy& one : bundles_.front()) copy(one);
    }
  }

  const int64_t x, y, z;

 private:
  struct Copy {
    Bf16* to;
    const Bf16* from;
    int bytes;
  };
  static void copy(const Copy& one) { store8(one.to, one.bytes != 0 ? load8(one.from) : Bf16x8{}); }
  void warp_barrier() { shared_.warps[static_cast<size_t>(lane_ / 32)]->wait(); }

  template <class T, class Op>
  T over_warp(T value, Op op) {
    static_assert(sizeof(T) <= kWords * sizeof(uint64_t));
    T* of = reinterpret_cast<T*>(shared_.of_lane.data() + static_cast<ptrdiff_t>(lane_ / 32) * 32 * kWords);
    for (int offset = 16; offset > 0; offset /= 2) {
      of[lane_ % 32] = value;
      warp_barrier();
      const T other = of[(lane_ % 32) ^ offset];
      warp_barrier();
      value = op(value, other);
    }
    return value;
  }

  RaceShared& shared_;
  const RaceWay way_;
  const int lane_;
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> bundles_;
};

template <class Kernel>
void run_as_threads(const Kernel& kernel, const RaceWay& way) {
  const Grid grid = kernel.grid();
  for (int64_t z = grid.z; z-- > 0;) {
    for (int64_t y = grid.y; y-- > 0;) {
      for (int64_t x = grid.x; x-- > 0;) {
        RaceShared shared(Kernel::kThreads, kernel.shared_bytes());
        std::vector<std::thread> lanes;
        for (int lane = 0; lane < Kernel::kThreads; ++lane) {
          lanes.emplace_back([&, lane] {
            RaceBlock block(shared, way, lane, {x, y, z});
            kernel(block);
          });
        }
        for (std::thread& lane : lanes) lane.join();
      }
    }
  }
}

}  // namespace ucas::gpu
