// Requests that several tests of the rollout engine share.
#pragma once

#include <span>
#include <vector>

#include "base/rng.h"
#include "rollout/rollouter.h"

namespace ucas::testing {

inline std::vector<std::vector<int32_t>> random_prompts(int64_t count, int64_t longest, int64_t vocab) {
  Rng rng(77, 1);
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(count));
  for (auto& prompt : prompts) {
    for (int64_t i = 0, n = 1 + rng.below(longest); i < n; ++i)
      prompt.push_back(static_cast<int32_t>(rng.below(vocab)));
  }
  return prompts;
}

inline std::vector<PromptJob> jobs_of(const std::vector<std::vector<int32_t>>& prompts, int64_t samples) {
  std::vector<PromptJob> jobs;
  for (size_t i = 0; i < prompts.size(); ++i) {
    jobs.push_back({.prompt = prompts[i], .problem = static_cast<uint32_t>(i), .samples = samples});
  }
  return jobs;
}

inline RolloutRequest request_of(std::span<const PromptJob> jobs, SamplingConfig sampling,
                                 std::vector<int32_t> stops = {0}) {
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling = sampling;
  request.seed = 42;
  request.step = 7;
  request.limits.stop_ids = std::move(stops);
  return request;
}

}  // namespace ucas::testing
