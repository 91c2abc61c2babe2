// What travels beside a pass, while the next block is computed.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <omp.h>

#include <future>
#include <utility>

namespace ucas {

// The pass has all threads: what is computed beside it takes one. The number is the calling thread's own.
class OneThread {
 public:
  explicit OneThread(bool wanted) : before_(at::get_num_threads()) {  // asked first: LibTorch sets it then
    if (wanted) omp_set_num_threads(1);
  }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

// Does `work`, without gradients: `beside`, from now on in a thread of its own, for which the destructor waits; else in
// the thread that calls get(), which throws what `work` throws.
template <class Work>
std::future<void> start_work(bool beside, Work work) {
  return std::async(beside ? std::launch::async : std::launch::deferred, [beside, work = std::move(work)] {
    const at::NoGradGuard no_grad;
    const OneThread one(beside);
    work();
  });
}

}  // namespace ucas
