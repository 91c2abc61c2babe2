#include "base/process/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/process/machine.h"

namespace ucas {

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
