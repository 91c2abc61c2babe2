#include "train/validation.h"

#include <algorithm>

#include "base/str.h"
#include "evaluate/engine/evaluator.h"

namespace ucas {

bool validates(const Training& t, bool finished) {
  const int64_t every = t.config.train.test_freq;
  return every > 0 && (t.state.step % every == 0 || finished);
}

void validate(const Training& t, StepRecord& record) {
  auto clock = record.time("testing", "validating");
  EvalInput input;
  input.problems = t.validation.problems;
  input.prompts = t.validation.prompt;
  input.stop_ids = t.stop_ids;
  input.label = "validation";
  input.show_progress = false;
  EvalConfig eval;
  eval.samples = 0;
  eval.max_tokens = t.config.rollout.response_length;
  eval.truncated = t.config.reward.truncated == Truncated::wrong ? Truncated::wrong : Truncated::grade;
  eval.bootstrap_draws = 0;
  eval.stored_responses = 0;
  EvalRecord result = evaluate(*t.rollout, t.policy.tokenizer, t.graders, input, eval);
  std::ranges::sort(result.by_source, {}, &std::pair<std::string, EvalNumbers>::first);
  StepMetrics& m = record.metrics;
  for (const auto& [source, numbers] : result.by_source) {
    if (numbers.greedy.known()) m.set(str("val-core/", source, "/acc/mean@1"), numbers.greedy.value);
    m.set(str("val-aux/", source, "/response_length/mean"), numbers.length);
    m.set(str("val-aux/", source, "/truncated_share"), numbers.truncated);
    m.set(str("val-aux/", source, "/unparseable_share"), numbers.unparseable);
  }
}

}  // namespace ucas
