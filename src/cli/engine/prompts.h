// Prompts for the commands that answer problem files: read, cut to --limit, encoded, over-long ones dropped with a
// warning.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/verdict.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "rollout/policy.h"

namespace ucas {

struct Questions {
  std::vector<Problem> problems;
  std::vector<std::vector<int32_t>> prompts;  // token ids, one per problem
  std::vector<int32_t> stop_ids;
  std::function<bool(const Episode&)> ends = nullptr;  // RolloutLimits::ends
};

std::vector<Problem> read_limited(const std::vector<std::string>& files, int64_t limit, const ProblemOptions& options);

// Drops prompts that leave no room for `max_tokens` in the model's positions. Borrows the policy's tokenizer.
Questions encode_questions(const std::vector<Problem>& problems, const Template& prompt_template, const Policy& policy,
                           const std::vector<std::string>& more_stops, int64_t max_tokens);

}  // namespace ucas
