#include "base/process/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"

namespace ucas {
namespace {

TEST(share_out, takes_every_item_once_whatever_the_threads) {
  for (int64_t threads : {0, 1, 3}) {
    for (size_t count : {0, 1, 7, 64, 65}) {
      std::vector<std::atomic<int>> seen(count);
      share_out(count, 8, threads, [&](size_t first, size_t last) {
        EXPECT_LE(last - first, 8u);
        for (size_t i = first; i < last; ++i) ++seen[i];
      });
      for (auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST(share_out, throws_what_a_block_throws_and_takes_no_more) {
  std::atomic<int> taken{0};
  auto work = [&](size_t first, size_t) {
    ++taken;
    if (first == 2) throw std::runtime_error("block 2");
    if (first > 2) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // however late the other one is
  };
  EXPECT_THROW(share_out(1000, 1, 2, work), std::runtime_error);
  EXPECT_LT(taken, 1000);
}

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(failed_check, throws_where_a_host_asks_for_it) {
  on_failed_check([](const std::string& what) { throw Failed(what); });
  try {
    UCAS_CHECK(1 + 1 == 3, "arithmetic");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Failed& failed) {
    EXPECT_NE(std::string(failed.what()).find("threads_test.cpp"), std::string::npos);
    EXPECT_NE(std::string(failed.what()).find("arithmetic (1 + 1 == 3)"), std::string::npos);
  }
  on_failed_check(nullptr);
}

}  // namespace
}  // namespace ucas
