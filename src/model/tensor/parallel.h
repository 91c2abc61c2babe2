// Loops of the model and the optimizer on the pool, by as many threads as LibTorch is set to use.
#pragma once

#include <ATen/Parallel.h>

#include "base/process/thread_pool.h"

namespace ucas {

// work(first, last) for parts of [0, count), `grain` or more at a time.
template <class Work>
void parallel_for(int64_t count, int64_t grain, const Work& work) {
  in_thread_pool(count, grain, at::get_num_threads(), work);
}

}  // namespace ucas
