// Responses are detokenised and graded as they end, by threads of its own, while others are still being sampled. Fed by
// train/collect/reward; which thread grades a response, and when, changes no verdict. Any thread may call.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/problem.h"
#include "verify/grader.h"

namespace ucas {

struct GradedEarly {
  std::string text;
  Verdict verdict;
  std::exception_ptr failure;  // of the grader; then there is no verdict
};

class EarlyGrading {
 public:
  using Key = std::pair<int64_t, uint32_t>;  // tells a response from all others until clear()
  using Text = std::function<std::string()>;

  explicit EarlyGrading(int64_t threads);
  ~EarlyGrading() { clear(); }
  EarlyGrading(const EarlyGrading&) = delete;
  EarlyGrading& operator=(const EarlyGrading&) = delete;

  // Borrows grader and problem until clear(); `text` is called by a thread of the pool.
  void begin(const Grader& grader, const Problem& problem, const Key& key, Text text);
  // nullptr: not begun here. Waits until it is graded; valid until clear(). Rethrows what `text` threw.
  const GradedEarly* find(const Key& key) const;
  // Whether find() would not wait for a response that was begun.
  bool graded(const Key& key) const;
  // Forgets all; what is not graded yet never is.
  void clear();

 private:
  using Task = std::packaged_task<GradedEarly()>;
  void work(const std::stop_token& stop);

  mutable std::mutex guard_;
  std::condition_variable_any ready_;
  std::deque<Task> queue_;
  std::map<Key, std::shared_future<GradedEarly>> begun_;
  std::vector<std::jthread> workers_;  // last: they end before what they use
};

}  // namespace ucas
