#include "base/process/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/patience.h"

namespace ucas {
namespace {

// Whether every one of `count` numbers was taken once.
bool takes_each_once(int64_t count, int64_t grain, int64_t threads) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  in_thread_pool(count, grain, threads, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
  });
  return std::all_of(seen.begin(), seen.end(), [](const auto& times) { return times == 1; });
}

TEST(thread_pool, takes_every_item_once_whatever_the_threads_and_the_grain) {
  for (int64_t threads : {1, 2, 3, 8, 1000})
    for (int64_t count : {0, 1, 2, 7, 64, 1001})
      for (int64_t grain : {0, 1, 5, 64})
        EXPECT_TRUE(takes_each_once(count, grain, threads)) << count << " " << threads;
}

TEST(thread_pool, loses_nothing_in_many_small_loops) {
  int64_t wrong = 0;
  for (int i = 0; i < 20000; ++i) wrong += !takes_each_once(2 + i % 13, 1, 2 + i % 3);
  EXPECT_EQ(wrong, 0);
}

TEST(thread_pool, others_take_the_share_of_who_is_held_up) {
  std::atomic<int> taken{0};
  const auto held = std::this_thread::get_id();
  in_thread_pool(64, 1, 2, [&](int64_t first, int64_t last) {
    if (std::this_thread::get_id() == held && first == 0) {  // the caller, in its first part
      const auto rest = static_cast<int>(64 - last);
      testing::wait_until([&] { return taken == rest; });  // the other one does the rest, of the caller's share too
    }
    taken += static_cast<int>(last - first);
  });
  EXPECT_EQ(taken, 64);
}

TEST(thread_pool, a_loop_inside_a_loop_or_beside_one_runs_on_its_caller) {
  std::atomic<int> wrong{0}, done{0};
  auto loop = [&] {
    in_thread_pool(8, 1, 4, [&](int64_t, int64_t) {
      const auto self = std::this_thread::get_id();
      in_thread_pool(8, 1, 4, [&](int64_t first, int64_t last) {
        wrong += first != 0 || last != 8 || std::this_thread::get_id() != self;
        ++done;
      });
    });
  };
  for (int i = 0; i < 200; ++i) {
    std::thread other(loop);
    loop();
    other.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(done, 400);
}

TEST(thread_pool, throws_what_a_part_throws_and_goes_on_after_it) {
  auto throwing = [](int64_t first, int64_t) {
    if (first == 0) throw std::runtime_error("part 0");
  };
  EXPECT_THROW(in_thread_pool(100, 1, 4, throwing), std::runtime_error);
  EXPECT_TRUE(takes_each_once(100, 1, 4));
}

TEST(thread_pool, a_fork_has_a_pool_of_its_own) {
  ASSERT_TRUE(takes_each_once(100, 1, 3));
  const pid_t child = fork();
  if (child == 0) _exit(takes_each_once(100, 1, 3) ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace ucas
