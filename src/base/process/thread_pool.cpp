#include "base/process/thread_pool.h"

#include <pthread.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/process/machine.h"

namespace ucas {

namespace {

constexpr int64_t kMostMembers = 256;  // the caller among them
constexpr auto kLook = std::chrono::microseconds(100), kWait = std::chrono::microseconds(50);

thread_local bool inside_loop = false;

void rest() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether it came true within the time.
template <class Condition>
bool spin_until(std::chrono::microseconds within, Condition condition) {
  const auto until = std::chrono::steady_clock::now() + within;
  do {
    for (int i = 0; i < 16; ++i) {
      if (condition()) return true;
      rest();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

// What is left of a share, [first, last), is one atomic number. A thread that was
// preempted while loops came and went takes a valid chunk of the current loop, or none.
class WorkRange {
 public:
  void fill(int64_t first, int64_t last) { left_.store(packed(first, last), std::memory_order_release); }

  // The front half for its owner, the back half for others, or `grain` where that is more.
  bool take(bool owner, int64_t grain, int64_t& first, int64_t& last) {
    uint64_t now = left_.load(std::memory_order_acquire);
    for (;;) {
      first = static_cast<int64_t>(now >> 32), last = static_cast<int64_t>(now & 0xffffffff);
      if (first >= last) return false;
      const int64_t part = std::min(last - first, std::max(grain, (last - first) / 2));
      const uint64_t rest = owner ? packed(first + part, last) : packed(first, last - part);
      if (!left_.compare_exchange_weak(now, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      (owner ? last : first) = owner ? first + part : last - part;
      return true;
    }
  }

 private:
  static uint64_t packed(int64_t first, int64_t last) {
    return static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(last);
  }
  std::atomic<uint64_t> left_{0};
};

class ThreadPool {
 public:
  void run(int64_t count, int64_t grain, int64_t members, LoopBody body, const void* work) {
    for (; started_ < members; ++started_) std::thread([this, self = started_] { live(self); }).detach();
    body_ = body, work_ = work;
    grain_.store(grain, std::memory_order_relaxed);
    members_.store(members, std::memory_order_relaxed);
    unfinished_.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
    for (int64_t m = 0; m < members; ++m) members_of_[m].share.fill(count * m / members, count * (m + 1) / members);
    for (int64_t m = 1; m < members; ++m) {
      members_of_[m].calls.fetch_add(1);
      members_of_[m].calls.notify_one();
    }
    work_through(0);
    for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) {
      if (!spin_until(kWait, [&] { return unfinished_.load(std::memory_order_acquire) == 0; })) unfinished_.wait(left);
    }
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  // Held while a loop runs.
  std::mutex busy;

 private:
  struct alignas(64) Member {
    WorkRange share;
    std::atomic<uint32_t> calls{0};  // to loops; what a member sleeps on
  };

  [[noreturn]] void live(int64_t self) {
    std::atomic<uint32_t>& calls = members_of_[self].calls;
    for (uint32_t seen = 0;;) {
      if (!spin_until(kLook, [&] { return calls.load(std::memory_order_acquire) != seen; })) calls.wait(seen);
      seen = calls.load(std::memory_order_acquire);
      work_through(self);
    }
  }

  void work_through(int64_t self) {
    inside_loop = true;
    const int64_t members = members_.load(std::memory_order_relaxed), grain = grain_.load(std::memory_order_relaxed);
    for (int64_t i = 0; i < members; ++i) {
      WorkRange& share = members_of_[(self + i) % members].share;
      for (int64_t first, last; share.take(i == 0, grain, first, last);) run_chunk(first, last);
    }
    inside_loop = false;
  }

  // body_ and work_ are those of the loop that the part was taken from: it ends after its last part.
  void run_chunk(int64_t first, int64_t last) {
    try {
      body_(work_, first, last);
    } catch (...) {
      std::lock_guard lock(throwing_);
      if (!thrown_) thrown_ = std::current_exception();
    }
    const auto part = static_cast<uint32_t>(last - first);
    if (unfinished_.fetch_sub(part, std::memory_order_acq_rel) == part) unfinished_.notify_one();
  }

  std::array<Member, kMostMembers> members_of_;
  int64_t started_ = 1;  // the caller is there
  LoopBody body_ = nullptr;
  const void* work_ = nullptr;
  std::atomic<int64_t> grain_{1}, members_{1};
  alignas(64) std::atomic<uint32_t> unfinished_{0};
  std::mutex throwing_;
  std::exception_ptr thrown_;
};

// Never freed: its threads end with the process. A forked child, which has none of them, gets another.
ThreadPool* the_pool = nullptr;
ThreadPool& pool() {
  static const bool made = [] {
    the_pool = new ThreadPool;
    return pthread_atfork(nullptr, nullptr, [] {
             the_pool = new ThreadPool;
             inside_loop = false;
           }) == 0;
  }();
  UCAS_CHECK(made, "pthread_atfork failed");
  return *the_pool;
}

}  // namespace

void in_thread_pool(int64_t count, int64_t grain, int64_t threads, LoopBody body, const void* work) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t members = std::min({threads, (count + grain - 1) / grain, kMostMembers});
  if (members <= 1 || inside_loop) return body(work, 0, count);
  UCAS_CHECK(count <= UINT32_MAX, "a loop may have at most 2^32 - 1 items");
  ThreadPool& all = pool();
  const std::unique_lock alone(all.busy, std::try_to_lock);
  if (!alone) return body(work, 0, count);
  all.run(count, grain, members, body, work);
}

void share_out(size_t count, size_t block, int64_t threads,
               const std::function<void(size_t first, size_t last)>& work) {
  const size_t blocks = (count + block - 1) / block;
  if (threads <= 0) threads = usable_cores();
  threads = std::min(threads, static_cast<int64_t>(blocks));
  std::atomic<size_t> next{0};
  std::exception_ptr thrown;
  std::mutex throwing;
  auto take = [&] {
    for (size_t b; (b = next.fetch_add(1)) < blocks;) {
      try {
        work(b * block, std::min(count, (b + 1) * block));
      } catch (...) {
        next = blocks;
        std::lock_guard lock(throwing);
        if (!thrown) thrown = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int64_t i = 1; i < threads; ++i) helpers.emplace_back(take);
    take();
  }  // joins
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ucas
