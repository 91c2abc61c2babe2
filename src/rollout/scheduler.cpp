#include "rollout/scheduler.h"

namespace ucas {

Scheduler::Scheduler(std::span<const PromptJob> jobs, int64_t prompt_slots, int64_t prefill_tokens)
    : jobs_(jobs), prefill_tokens_(prefill_tokens) {
  for (int64_t slot = prompt_slots - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

std::vector<Scheduler::Prefill> Scheduler::next_prefill() {
  std::vector<Prefill> batch;
  int64_t tokens = 0;
  while (next_job_ < std::ssize(jobs_) && !free_slots_.empty()) {
    const PromptJob& job = jobs_[next_job_];
    if (job.samples <= 0) {
      ++next_job_;
      continue;
    }
    const auto length = static_cast<int64_t>(job.prompt.size());
    if (!batch.empty() && tokens + length > prefill_tokens_) break;
    tokens += length;
    batch.push_back({next_job_, free_slots_.back()});
    waiting_.push_back({next_job_, free_slots_.back(), 0});
    free_slots_.pop_back();
    ++next_job_;
  }
  return batch;
}

std::vector<Scheduler::Admission> Scheduler::next_samples(int64_t limit) {
  std::vector<Admission> admitted;
  while (static_cast<int64_t>(admitted.size()) < limit && !waiting_.empty()) {
    Waiting& prompt = waiting_.front();
    const PromptJob& job = jobs_[prompt.job];
    admitted.push_back({prompt.job, job.first_sample + static_cast<uint32_t>(prompt.next), prompt.prompt_slot});
    if (++prompt.next == job.samples) {
      free_slots_.push_back(prompt.prompt_slot);
      waiting_.pop_front();
    }
  }
  return admitted;
}

}  // namespace ucas
