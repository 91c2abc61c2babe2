// What tests know of time: nothing that a slow, busy or stopped machine changes. They wait for what happens, without a
// bound of their own (ctest ends a test that hangs), and what something costs is CPU seconds of this thread: others'
// work and pauses are not in them.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace ucas::testing {

// Until `happened()`; looked at every millisecond.
template <class Happened>
void wait_until(Happened happened) {
  while (!happened()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Makes who calls it at each step several times as slow as who does not, on a machine of any speed.
class Dawdler {
 public:
  void step() {
    using Clock = std::chrono::steady_clock;
    const auto taken = std::clamp<Clock::duration>(Clock::now() - last_, std::chrono::microseconds(50),
                                                   std::chrono::milliseconds(500));
    std::this_thread::sleep_for(4 * taken);
    last_ = Clock::now();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace ucas::testing
