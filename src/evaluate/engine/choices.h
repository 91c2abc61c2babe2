// Multiple choice without generation: the log-prob of each choice's letter right after the prompt, the greatest wins.
// Prompts run packed through the model's own forward and head statistics, so a result depends on its prompt and the
// weights alone (docs/numerics.md). Fed by `ucas evaluate` for benchmarks with grader = "choice".
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/problem.h"
#include "model/model.h"
#include "records/outputs.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

struct ChoiceQuestion {
  std::span<const int32_t> prompt;   // token ids, at least one
  std::span<const int32_t> letters;  // the token of each choice's letter
};
struct ChoiceScore {
  std::vector<double> logprob;         // of each letter, over the whole vocabulary, at temperature 1
  double entropy = 0, confidence = 0;  // of the position that they stand at
};
// One score per question. Error(ErrorKind::numeric) if a log-prob is not finite.
std::vector<ChoiceScore> score_choices(Model& model, std::span<const ChoiceQuestion> questions);

// The tokens of A, B ... after this prompt: with a space before the letter unless the prompt ends in white space, or
// where the vocabulary has no such tokens. Error(ErrorKind::tokenizer) if a letter is no single token either way.
std::vector<int32_t> letter_tokens(const Tokenizer& tokenizer, std::span<const int32_t> prompt, int64_t count);

struct ChoiceRequest {
  std::span<const Problem> problems;              // with choices
  std::span<const std::vector<int32_t>> prompts;  // by problem, template applied
  std::span<const size_t> which;                  // indices of those that are asked
  int64_t batch_tokens = 2048;                    // prompt tokens per forward pass
  std::function<void(Output)> ended;              // in the order of `which`
  std::function<bool()> should_stop = {};         // polled once per pass
};
// Each output is the greedy one of its problem: text is the letter, ids its token, logprob its log-prob.
void compare_choices(Model& model, const Tokenizer& tokenizer, const ChoiceRequest& request);

}  // namespace ucas
