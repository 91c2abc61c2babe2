#include "evaluate/engine/choices.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

std::string letter(size_t index) { return std::string(1, static_cast<char>('A' + index)); }

// Word-level tokenizers refuse text that is no word of theirs; here that is an answer.
std::optional<int32_t> single_token(const Tokenizer& tokenizer, const std::string& text) {
  const auto alone = [&](std::string_view written) -> std::optional<int32_t> {
    const std::vector<int32_t> ids = tokenizer.encode(written, Tokenizer::Special::as_text, Tokenizer::Place::later);
    if (ids.size() == 1 && tokenizer.token_text(ids[0]) == text) return ids[0];
    return std::nullopt;
  };
  try {
    if (const auto id = alone(text)) return id;
    // Files like Llama 2's write a space before every text: "A" is the token of " A", and that of "A" has only its
    // name.
    if (text.starts_with(' ')) return alone(std::string_view(text).substr(1));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::tokenizer) throw;
  }
  const std::optional<int32_t> named = tokenizer.id_of(text);
  return named && tokenizer.token_text(*named) == text ? named : std::nullopt;
}

bool ends_in_space(const Tokenizer& tokenizer, std::span<const int32_t> prompt) {
  const std::string text = tokenizer.token_text(prompt.back());
  return !text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t');
}

Output output_of(const Problem& problem, const ChoiceScore& score, std::span<const int32_t> letters) {
  const auto best = static_cast<size_t>(std::ranges::max_element(score.logprob) - score.logprob.begin());
  Output out;
  out.source = problem.source;
  out.id = problem.id;
  out.sample = kGreedySample;
  out.text = letter(best);
  out.ids = {letters[best]};
  out.finished = true;
  out.logprob = score.logprob[best];
  out.entropy = score.entropy;
  out.confidence = score.confidence;
  out.choice_logprob = score.logprob;
  return out;
}

}  // namespace

std::vector<ChoiceScore> score_choices(Model& model, std::span<const ChoiceQuestion> questions) {
  if (questions.empty()) return {};
  const at::NoGradGuard no_grad;
  Packed packed;
  for (const ChoiceQuestion& question : questions) {
    UCAS_CHECK(!question.prompt.empty() && !question.letters.empty(), "a prompt and choices");
    packed.append(question.prompt);
  }
  const at::Tensor hidden = model.hidden(packed);
  // The last position of each prompt, once for each of its letters.
  std::vector<at::Tensor> rows;
  std::vector<int32_t> targets;
  for (size_t i = 0; i < questions.size(); ++i) {
    const at::Tensor last = hidden.select(0, packed.begin[i + 1] - 1);
    for (const int32_t token : questions[i].letters) {
      rows.push_back(last);
      targets.push_back(token);
    }
  }
  const HeadStats stats = model.head().stats(at::stack(rows), targets, 1.0);
  const at::Tensor logprob = stats.logprob.cpu().contiguous(), entropy = stats.entropy.cpu().contiguous(),
                   confidence = stats.confidence.cpu().contiguous();
  std::vector<ChoiceScore> scores;
  int64_t row = 0;
  for (const ChoiceQuestion& question : questions) {
    ChoiceScore& score = scores.emplace_back();
    score.entropy = entropy.const_data_ptr<float>()[row];
    score.confidence = confidence.const_data_ptr<float>()[row];
    for (size_t i = 0; i < question.letters.size(); ++i) {
      score.logprob.push_back(logprob.const_data_ptr<float>()[row++]);
      if (std::isfinite(score.logprob.back())) continue;
      throw Error(ErrorKind::numeric,
                  "the log-prob of a choice is not finite; the checkpoint holds non-finite or huge weights", kNumeric);
    }
  }
  return scores;
}

std::vector<int32_t> letter_tokens(const Tokenizer& tokenizer, std::span<const int32_t> prompt, int64_t count) {
  UCAS_CHECK(!prompt.empty(), "expected a prompt");
  const std::vector<std::string> leads =
      ends_in_space(tokenizer, prompt) ? std::vector<std::string>{""} : std::vector<std::string>{" ", ""};
  for (const std::string& lead : leads) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      if (const auto id = single_token(tokenizer, lead + letter(i))) ids.push_back(*id);
    }
    if (static_cast<int64_t>(ids.size()) == count) return ids;
  }
  throw Error(ErrorKind::tokenizer,
              str(tokenizer.directory(), ": the letters A to ", letter(static_cast<size_t>(count) - 1),
                  " are not single tokens, so choices cannot be compared by log-prob; grade the generated "
                  "letter instead (grader = \"letter\")"));
}

void compare_choices(Model& model, const Tokenizer& tokenizer, const ChoiceRequest& request) {
  // Few different (count, lead) pairs: letters of a prompt depend on its last token alone.
  std::map<std::pair<int64_t, int32_t>, std::vector<int32_t>> known;
  const auto letters_of = [&](size_t i) -> const std::vector<int32_t>& {
    const auto& prompt = request.prompts[i];
    const auto count = static_cast<int64_t>(request.problems[i].choices.size());
    const auto [at, fresh] = known.try_emplace({count, prompt.back()});
    if (fresh) at->second = letter_tokens(tokenizer, prompt, count);
    return at->second;
  };
  for (size_t next = 0; next < request.which.size();) {
    if (request.should_stop && request.should_stop()) return;
    const size_t first = next;
    std::vector<ChoiceQuestion> batch;
    int64_t tokens = 0;
    for (; next < request.which.size(); ++next) {
      const size_t i = request.which[next];
      const auto length = static_cast<int64_t>(request.prompts[i].size());
      if (!batch.empty() && tokens + length > request.batch_tokens) break;
      tokens += length;
      batch.push_back({request.prompts[i], letters_of(i)});
    }
    const std::vector<ChoiceScore> scores = score_choices(model, batch);
    for (size_t k = 0; k < scores.size(); ++k) {
      request.ended(output_of(request.problems[request.which[first + k]], scores[k], batch[k].letters));
    }
  }
}

}  // namespace ucas
