// Greedy and sampled evaluation of a policy on problems with known answers: pass@1, mean@n, unbiased pass@k, maj@n,
// entropy, lengths, each with a confidence interval, over all and by source (algorithms: Sec. 18).
// Fed by `ucas evaluate`, the demo and the trainer's validation; uses any Rollout and Verifier.
// Draws are keyed with step = kEvaluationStep, so they never coincide with those of training.
// Threads: one caller at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/problem.h"
#include "evaluate/config.h"
#include "evaluate/result.h"
#include "rollout/rollout.h"
#include "text/tokenizer.h"
#include "verify/verifier.h"

namespace ucas {

constexpr uint32_t kEvaluationStep = 0x80000000u;

struct EvalInput {
  std::span<const Problem> problems;
  std::span<const std::vector<int32_t>> prompts;  // token ids of each problem, template applied
  std::vector<int32_t> stop_ids;
  std::string label, model;  // for the result
  int64_t step = -1;
  std::vector<std::string> data;
  bool show_progress = true;
  std::function<bool()> should_stop;  // polled while generating; the result is then not complete
};

EvalResult evaluate(Rollout& rollout, const Tokenizer& tokenizer, const Verifier& verifier, const EvalInput& input,
                    const EvalConfig& config);

}  // namespace ucas
