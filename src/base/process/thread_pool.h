// A thread pool for loops that run thousands of times a second, such as those of a decoding step.
//
// Each thread takes its range of the loop from the front, chunk by chunk, and then steals from the back of other
// ranges. So a preempted thread delays only its current chunk. Idle threads spin for about 100 us and then sleep, as
// does a caller that waits for the last chunks: next to other busy processes two threads cost no more than one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// Independent work shared out among threads that live for this call alone: none before the first call and none after
// it, so that a process may fork between two of them.

// work(first, last) for neighbouring blocks of [0, count), `block` at a time, to whichever thread is free; the caller
// is one of them. What the blocks compute must not depend on who takes them. 0 threads: all that this process may use.
// What a block throws ends the others' taking of blocks, and is thrown here; the first one where several throw.
void share_out(size_t count, size_t block, int64_t threads, const std::function<void(size_t first, size_t last)>& work);

}  // namespace ucas
