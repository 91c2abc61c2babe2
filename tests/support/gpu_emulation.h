// Emulates a GPU's kernels on the CPU, slowly: a thread block is a loop over its lanes (kernels/gpu/thread_block.h).
#pragma once

#include <vector>

#include "kernels/gpu/kernels.h"
#include "kernels/gpu/thread_block.h"

namespace ucas::gpu {

class HostThreadBlock {
 public:
  template <class T>
  struct Local {
    std::vector<T> values = std::vector<T>(1024);
    T& operator[](int lane) { return values[lane]; }
  };

  HostThreadBlock(int threads, int shared_bytes, int64_t bx, int64_t by, int64_t bz)
      : x(bx), y(by), z(bz), threads_(threads), memory_((shared_bytes + 15) / 16) {}
  template <class F>
  void each(F f) {
    for (int lane = 0; lane < threads_; ++lane) f(lane);
  }
  template <class F, class Op>
  auto reduce(F f, Op op) {
    using T = decltype(f(0));
    const std::vector<T> value = over_warps<T>(f, op);
    T total = value[0];
    for (int warp = 1; warp < threads_ / 32; ++warp) total = op(total, value[warp * 32]);
    return total;
  }
  template <class F>
  auto sum(F f) {
    return reduce(f, [](const auto& a, const auto& b) { return a + b; });
  }
  template <class F>
  void each_of_warp(F f) {
    each(f);
  }
  template <class F, class Op, class T>
  void reduce_of_warp(F f, Op op, Local<T>& to) {
    const std::vector<T> value = over_warps<T>(f, op);
    for (int lane = 0; lane < threads_; ++lane) to[lane] = value[lane];
  }
  template <class T>
  T* shared(int offset = 0) {
    return reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(memory_.data()) + offset);
  }

  void fetch(Bf16* to, const Bf16* from, int bytes) const { store8(to, bytes != 0 ? load8(from) : Bf16x8{}); }
  void end_bundle() const {}
  template <int kLater>
  void await() const {}

  const int64_t x, y, z;

 private:
  template <class T, class F, class Op>
  std::vector<T> over_warps(F f, Op op) {
    std::vector<T> value, next(threads_);
    for (int lane = 0; lane < threads_; ++lane) value.push_back(f(lane));
    for (int offset = 16; offset > 0; offset /= 2) {
      for (int lane = 0; lane < threads_; ++lane) next[lane] = op(value[lane], value[lane ^ offset]);
      value.swap(next);
    }
    return value;
  }

  int threads_;
  std::vector<Floatx4> memory_;
};

template <class Kernel>
void launch(Stream, Grid grid, const Kernel& kernel, const char* name) {
  static_assert(Kernel::kThreads % 32 == 0 && Kernel::kThreads <= 1024);
  check_grid(name, grid);
  for (int64_t z = 0; z < grid.z; ++z) {
    for (int64_t y = 0; y < grid.y; ++y) {
      for (int64_t x = 0; x < grid.x; ++x) {
        HostThreadBlock thread_block(Kernel::kThreads, kernel.shared_bytes(), x, y, z);
        kernel(thread_block);
      }
    }
  }
}

const Table& host();

}  // namespace ucas::gpu
