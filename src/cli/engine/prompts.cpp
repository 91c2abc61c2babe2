#include "cli/engine/prompts.h"

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

std::vector<Problem> read_limited(const std::vector<std::string>& files, int64_t limit, const ProblemOptions& options) {
  std::vector<Problem> problems = read_problems(files, options);
  if (limit > 0 && static_cast<int64_t>(problems.size()) > limit) problems.resize(static_cast<size_t>(limit));
  return problems;
}

Questions encode_questions(const std::vector<Problem>& problems, const Template& prompt_template, const Policy& policy,
                           const std::vector<std::string>& more_stops, int64_t max_tokens) {
  const ModelConfig& model = policy.model->config();
  const int64_t room = model.max_position_embeddings - max_tokens;
  if (room < 1) {
    throw Error(ErrorKind::config,
                str("max_tokens = ", max_tokens, " leaves no room for a prompt: the model has ",
                    model.max_position_embeddings, " positions (max_position_embeddings); lower max_tokens"));
  }
  PreparedPrompts prepared = prepare_prompts(prompt_template, problems, policy.tokenizer, room);
  if (prepared.dropped > 0) {
    count_warning(Warning::prompt, prepared.dropped);
    warn(str(prepared.dropped, " of ", problems.size(), " prompts dropped: empty, or longer than ", room,
             " tokens (the model's ", model.max_position_embeddings, " positions less max_tokens = ", max_tokens, ")"));
  }
  Questions out;
  for (int64_t index : prepared.problem) out.problems.push_back(problems[static_cast<size_t>(index)]);
  out.prompts = std::move(prepared.ids);
  const Stops stops = stops_of(prompt_template, more_stops, policy.tokenizer);
  out.stop_ids = collect_stop_ids(model, policy.tokenizer, stops.ids);
  out.ends = ends_at(policy.tokenizer, stops.texts);
  return out;
}

}  // namespace ucas
