// What tests know of time: nothing that a slow, busy or stopped machine changes. They wait for what happens, without a
// bound of their own (ctest ends a test that hangs), and what something costs is CPU seconds of this thread: others'
// work and pauses are not in them.
#pragma once

#include <time.h>

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

}  // namespace ucas::testing
