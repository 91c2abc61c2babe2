// A thread pool for loops that run thousands of times a second, such as those of a decoding step.
//
// Each thread takes its range of the loop from the front, chunk by chunk, and then steals from the back of other
// ranges. So a preempted thread delays only its current chunk. Idle threads spin for about 100 us and then sleep, as
// does a caller that waits for the last chunks: next to other busy processes two threads cost no more than one.
#pragma once

#include <cstdint>
#include <memory>

namespace ucas {

// work(first, last) for parts of [0, count), each but the last ones of a share at least `grain` long, on up to
// `threads` threads, of which the caller is one. What is computed must not depend on how it is cut. Inside such a loop,
// or while another thread's runs, all of it is work(0, count) on the caller. What a part throws is thrown here once all
// is done; the first one where several throw. A forked process begins with no members.
using LoopBody = void (*)(const void* work, int64_t first, int64_t last);
void in_thread_pool(int64_t count, int64_t grain, int64_t threads, LoopBody body, const void* work);

template <class Work>
void in_thread_pool(int64_t count, int64_t grain, int64_t threads, const Work& work) {
  const LoopBody body = [](const void* of, int64_t first, int64_t last) {
    (*static_cast<const Work*>(of))(first, last);
  };
  in_thread_pool(count, grain, threads, body, std::addressof(work));
}

}  // namespace ucas
