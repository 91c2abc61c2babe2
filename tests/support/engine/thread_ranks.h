// Ranks as threads of one process: what sharding/ranks.h promises, over memory that all of them see. Sums are in the
// order of the ranks. Calls are compared by name, and where one rank has ended the others' next call is an
// Error(ErrorKind::ranks), as between processes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/str.h"
#include "sharding/ranks.h"

namespace ucas::testing {

class ThreadRanks final : public Ranks {
 public:
  // Runs body(ranks) in `size` threads; throws what the first rank that failed by itself has thrown.
  static void run(int64_t size, const std::function<void(std::shared_ptr<Ranks>)>& body) {
    auto hall = std::make_shared<Hall>(size);
    std::vector<std::exception_ptr> failed(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(std::shared_ptr<Ranks>(new ThreadRanks(hall, rank)));
        } catch (...) {
          failed[static_cast<size_t>(rank)] = std::current_exception();
        }
        hall->leave();
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::exception_ptr followed;  // of one that only lost another
    for (const std::exception_ptr& failure : failed) {
      if (!failure) continue;
      try {
        std::rethrow_exception(failure);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::ranks) throw;
        followed = failure;
      }
    }
    if (followed) std::rethrow_exception(followed);
  }

  void barrier(const char* what) override {
    meet(what, {});
    hall_->meet();
  }

  std::vector<std::string> all_gather(const char* what, const std::string& bytes) override {
    bytes_ += static_cast<int64_t>(bytes.size());
    meet(what, {.bytes = &bytes});
    std::vector<std::string> all;
    for (const Call& call : hall_->calls) all.push_back(*call.bytes);
    hall_->meet();
    return all;
  }

  void all_reduce(const char* what, std::span<const at::Tensor> tensors) override {
    std::vector<std::vector<at::Tensor>> to(1);
    to[0].assign(tensors.begin(), tensors.end());
    sum_into(what, to, [](size_t) { return true; });
  }

  void reduce(const char* what, OfRanks to) override {
    sum_into(what, to, [&](size_t of) { return static_cast<int64_t>(of) == rank(); });
  }

  void add_in_order(const char* what, OfRanks to, std::span<const at::Tensor> sums, int64_t givers) override {
    const at::NoGradGuard no_grad;
    meet(what, {.of_ranks = to});
    const auto self = static_cast<size_t>(rank());
    for (size_t r = 0; r < to.size(); ++r) {
      for (const at::Tensor& tensor : to[r])
        if (r != self && rank() < givers) count(tensor);
    }
    for (size_t from = 0; from < static_cast<size_t>(givers); ++from) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i].add_(hall_->calls[from].of_ranks[self][i]);
    }
    hall_->meet();
  }

  using Ranks::broadcast;
  void broadcast(const char* what, OfRanks from) override {
    const at::NoGradGuard no_grad;
    meet(what, {.of_ranks = from});
    for (size_t r = 0; r < from.size(); ++r) {
      for (size_t i = 0; i < from[r].size(); ++i) {
        count(from[r][i]);
        if (static_cast<int64_t>(r) != rank()) from[r][i].copy_(hall_->calls[r].of_ranks[r][i]);
      }
    }
    hall_->meet();
  }

 private:
  // What a rank has given to the call that all are in.
  struct Call {
    std::string what = {};
    const std::string* bytes = nullptr;
    std::span<const at::Tensor> tensors = {};
    OfRanks of_ranks = {};
  };

  // Where they meet.
  struct Hall {
    explicit Hall(int64_t ranks) : size(ranks), calls(static_cast<size_t>(ranks)) {}

    void meet() {
      std::unique_lock lock(mutex);
      const int64_t now = meetings;
      if (++arrived == size) {
        arrived = 0;
        ++meetings;
        wake.notify_all();
        return;
      }
      wake.wait(lock, [&] { return meetings != now || gone > 0; });
      if (meetings == now) lost();
    }
    template <class Change>
    void change(Change change) {
      const std::lock_guard lock(mutex);
      change();
      wake.notify_all();
    }
    void leave() {
      change([&] { ++gone; });
    }
    [[noreturn]] static void lost() { throw Error(ErrorKind::ranks, "another rank has ended", kNumeric); }

    const int64_t size;
    std::vector<Call> calls;
    std::mutex mutex;
    std::condition_variable wake;
    int64_t arrived = 0, meetings = 0, gone = 0;
  };

  ThreadRanks(std::shared_ptr<Hall> hall, int64_t rank) : Ranks(rank, hall->size), hall_(std::move(hall)) {
    place_ = {.on_host = size(), .local = rank, .sharing_cores = size()};
  }

  void count(const at::Tensor& tensor) { bytes_ += static_cast<int64_t>(tensor.nbytes()); }

  // All have called, and it was the same call.
  void meet(const char* what, Call mine) {
    mine.what = what;
    hall_->calls[static_cast<size_t>(rank())] = mine;
    hall_->meet();
    for (size_t r = 0; r < hall_->calls.size(); ++r) {
      if (hall_->calls[r].what == what) continue;
      throw Error(ErrorKind::ranks, str("rank ", rank(), " is at ", what, ", rank ", r, " at ", hall_->calls[r].what),
                  kNumeric);
    }
  }

  // What is for rank r, where `wanted(r)`.
  template <class Wanted>
  void sum_into(const char* what, OfRanks to, Wanted wanted) {
    const at::NoGradGuard no_grad;
    meet(what, {.of_ranks = to});
    std::vector<std::pair<at::Tensor, at::Tensor>> sums;  // and where each belongs
    for (size_t r = 0; r < to.size(); ++r) {
      for (size_t i = 0; i < to[r].size(); ++i) {
        count(to[r][i]);
        if (!wanted(r)) continue;
        at::Tensor sum = hall_->calls[0].of_ranks[r][i].clone();
        for (size_t from = 1; from < hall_->calls.size(); ++from) sum.add_(hall_->calls[from].of_ranks[r][i]);
        sums.emplace_back(std::move(sum), to[r][i]);
      }
    }
    hall_->meet();
    for (auto& [sum, place] : sums) place.copy_(sum);
    hall_->meet();
  }

  const std::shared_ptr<Hall> hall_;
};

}  // namespace ucas::testing
