// The order of the engine's work: which prompts are prefilled next, and which sample takes the next free slot. Pure
// bookkeeping, no tensors. Prompts wait in a few slots of their own, so that many samples, or a refill, find their
// prefill done; jobs are served in order.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "rollout/rollouter.h"

namespace ucas {

class Scheduler {
 public:
  struct Prefill {
    int64_t job, prompt_slot;
  };
  struct Admission {
    int64_t job;
    uint32_t sample;
    int64_t prompt_slot;
  };

  Scheduler(std::span<const PromptJob> jobs, int64_t prompt_slots, int64_t prefill_tokens);

  // More jobs, after those that there are: `jobs` holds all of them.
  void extend(std::span<const PromptJob> jobs) { jobs_ = jobs; }
  // The next prompts, as many as free prompt slots and the token budget allow, one at least if a slot is free. They
  // count as prefilled from here on.
  std::vector<Prefill> next_prefill();
  // At most `limit` samples of prefilled prompts. A prompt slot whose last sample is among them is free for the next
  // call of next_prefill: copy from it before.
  std::vector<Admission> next_samples(int64_t limit);

 private:
  struct Waiting {
    int64_t job, prompt_slot, next;
  };
  std::span<const PromptJob> jobs_;
  int64_t prefill_tokens_;
  int64_t next_job_ = 0;
  std::vector<int64_t> free_slots_;  // of prompts
  std::deque<Waiting> waiting_;      // prefilled, samples left to admit
};

}  // namespace ucas
