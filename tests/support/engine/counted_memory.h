// Bytes that CPU tensors of this process take while it lives: now, and at most since begin(). Threads: any.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace ucas::testing {

class CountedMemory final : public c10::Allocator {
 public:
  CountedMemory() : inner_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, kPriority); }
  ~CountedMemory() override { c10::SetCPUAllocator(inner_, kPriority); }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  void begin() { peak_ = now_.load(); }
  int64_t now() const { return now_; }
  int64_t peak() const { return peak_; }

  c10::DataPtr allocate(size_t bytes) override {
    auto* held = new Held{inner_->allocate(bytes), static_cast<int64_t>(bytes)};
    const int64_t now = now_ += held->bytes;
    for (int64_t peak = peak_; now > peak && !peak_.compare_exchange_weak(peak, now);) continue;
    return {held->memory.get(), held, &release, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static constexpr uint8_t kPriority = 200;
  struct Held {
    c10::DataPtr memory;
    int64_t bytes;
  };
  // Tensors may outlive the count.
  static inline std::atomic<int64_t> now_ = 0, peak_ = 0;
  static void release(void* held) {
    now_ -= static_cast<Held*>(held)->bytes;
    delete static_cast<Held*>(held);
  }

  c10::Allocator* const inner_;
};

}  // namespace ucas::testing
