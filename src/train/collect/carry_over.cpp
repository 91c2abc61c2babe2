#include "train/collect/carry_over.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "records/run/step_data.h"

namespace ucas {

std::string carry_over_lines(const Batch& carried_over, const TrainingSet& data, int64_t step) {
  if (carried_over.groups.empty()) return "";
  StepData kept;
  kept.step = step;
  kept.reasons = true;
  kept.groups_of_step = static_cast<int64_t>(carried_over.groups.size());
  kept.batch = carried_over;
  kept.advantage.resize(carried_over.token.size());
  for (const Group& group : carried_over.groups) kept.problem.push_back(data.problems[group.problem].id);
  return step_data_lines(kept);
}

Batch read_carry_over(const std::string& path, const TrainingSet& data, int64_t step, int64_t groups,
                      int64_t vocabulary) {
  StepData kept = read_step_data(path);
  const auto expect = [&](bool good, const std::string& expected) {
    if (!good) throw Error(ErrorKind::schema, str(path, ": expected ", expected, "; take another checkpoint"));
  };
  Batch& batch = kept.batch;
  expect(kept.step == step, str("what step ", step, " left, got step ", kept.step));
  expect(std::ssize(batch.groups) == groups, str(groups, " prompts, as state.json says, got ", batch.groups.size()));
  for (const std::vector<float>* signal : {&batch.rollout_logprob, &batch.entropy, &batch.confidence, &batch.logit}) {
    expect(signal->size() == batch.token.size(), "log-probs, entropy, confidence and logits of all tokens");
  }
  expect(std::ranges::all_of(batch.token, [&](int32_t id) { return id >= 0 && id < vocabulary; }),
         str("token ids below ", vocabulary));
  for (const Response& o : batch.responses) {
    for (const Insert& insert : o.inserts) {
      expect(std::ranges::all_of(insert.token, [&](int32_t id) { return id >= 0 && id < vocabulary; }),
             str("token ids below ", vocabulary, " of inserts"));
    }
  }
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    Group& group = batch.groups[g];
    const bool known = group.problem < data.size() && data.problems[group.problem].id == kept.problem[g];
    expect(known && group.step == step, str("problems of this run, sampled at step ", step));
    group.prompt = data.prompt[group.problem];
  }
  return batch;
}

}  // namespace ucas
