#include "train/collect/early_grading.h"

#include <chrono>

#include "base/process/activity.h"
#include "base/str.h"

namespace ucas {

namespace {

GradedEarly graded_by(const Grader& grader, const Problem& problem, const EarlyGrading::Key& key, std::string text) {
  const Doing doing(str("grading ", printable(problem.id, 60), ", sample ", key.second));
  GradedEarly graded{std::move(text), {}, nullptr};
  try {
    const Answer answer{graded.text, &problem.gold};
    graded.verdict = std::move(grader.grade({&answer, 1}).front());
  } catch (...) {
    graded.failure = std::current_exception();
  }
  return graded;
}

}  // namespace

EarlyGrading::EarlyGrading(int64_t threads) {
  for (int64_t i = 0; i < threads; ++i) workers_.emplace_back([this](std::stop_token stop) { work(stop); });
}

void EarlyGrading::begin(const Grader& grader, const Problem& problem, const Key& key, Text text) {
  Task task([&grader, &problem, key, text = std::move(text)] { return graded_by(grader, problem, key, text()); });
  const std::lock_guard lock(guard_);
  begun_[key] = task.get_future().share();
  queue_.push_back(std::move(task));
  ready_.notify_one();
}

const GradedEarly* EarlyGrading::find(const Key& key) const {
  std::shared_future<GradedEarly> future;
  {
    const std::lock_guard lock(guard_);
    const auto found = begun_.find(key);
    if (found == begun_.end()) return nullptr;
    future = found->second;
  }
  return &future.get();  // begun_ keeps it
}

bool EarlyGrading::graded(const Key& key) const {
  const std::lock_guard lock(guard_);
  const auto found = begun_.find(key);
  return found != begun_.end() && found->second.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void EarlyGrading::clear() {
  const std::lock_guard lock(guard_);
  queue_.clear();
  begun_.clear();
}

void EarlyGrading::work(const std::stop_token& stop) {
  std::unique_lock lock(guard_);
  while (ready_.wait(lock, stop, [this] { return !queue_.empty(); })) {
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    task = {};  // what it holds goes outside of the lock
    lock.lock();
  }
}

}  // namespace ucas
