#include "support/batches.h"

#include <algorithm>
#include <optional>

namespace ucas::testing {

Batch make_batch(const std::vector<Row>& rows) {
  Batch batch;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (i == 0 || row.group != rows[i - 1].group) {
      Group group;
      group.problem = row.group;
      group.first = static_cast<int64_t>(i);
      batch.groups.push_back(group);
    }
    Group& group = batch.groups.back();
    Response response;
    response.first = batch.token_count();
    response.length = static_cast<int64_t>(row.logit.size());
    response.group = static_cast<int64_t>(batch.groups.size()) - 1;
    response.sample = group.count++;
    response.score = response.reward = row.reward;
    batch.responses.push_back(response);
    batch.token.resize(batch.token.size() + row.logit.size());
    batch.confidence.insert(batch.confidence.end(), row.confidence.begin(), row.confidence.end());
    batch.logit.insert(batch.logit.end(), row.logit.begin(), row.logit.end());
  }
  return batch;
}

void LossCase::add(const std::vector<float>& lp, const std::vector<float>& old, const std::vector<float>& A,
                   const std::vector<float>& H, const std::vector<float>& ref) {
  int64_t first = tokens();
  auto number = static_cast<int64_t>(sequences.size());
  sequences.push_back({first, static_cast<int64_t>(lp.size()), number, number / 3});
  auto append = [&](std::vector<float>& to, const std::vector<float>& from) {
    to.insert(to.end(), from.begin(), from.end());
    to.resize(static_cast<size_t>(first) + lp.size());
  };
  for (auto [to, from] : {std::pair{&old_logprob, &old}, {&advantage, &A}, {&entropy, &H}, {&ref_logprob, &ref}}) {
    append(*to, *from);
  }
  append(logprob, lp);
  append(rollout_logprob, old);
  for (size_t t = margin.size(); t < logprob.size(); ++t) {
    margin.push_back(logprob[t] > -1.0986f ? 0 : logprob[t]);
    const float q = old_logprob[t] + 0.1f;
    min_p_logprob.push_back(q > 0 ? 0 : q);
  }
}

LossCase LossCase::slice(size_t first, size_t count) const {
  LossCase part;
  for (size_t i = first; i < std::min(first + count, sequences.size()); ++i) {
    auto cut = [&](const std::vector<float>& values) {
      auto begin = values.begin() + sequences[i].first;
      return std::vector<float>(begin, begin + sequences[i].length);
    };
    part.add(cut(logprob), cut(old_logprob), cut(advantage), cut(entropy), cut(ref_logprob));
    part.sequences.back().response = sequences[i].response;
    part.sequences.back().group = sequences[i].group;
    std::ranges::copy(cut(rollout_logprob), part.rollout_logprob.end() - sequences[i].length);
    std::ranges::copy(cut(margin), part.margin.end() - sequences[i].length);
    std::ranges::copy(cut(min_p_logprob), part.min_p_logprob.end() - sequences[i].length);
    if (mark.empty()) continue;
    auto begin = mark.begin() + sequences[i].first;
    part.mark.insert(part.mark.end(), begin, begin + sequences[i].length);
  }
  return part;
}

LossInput LossCase::input() const {
  LossInput in;
  in.sequences = sequences;
  in.logprob = logprob;
  in.old_logprob = old_logprob;
  in.rollout_logprob = rollout_logprob;
  in.advantage = advantage;
  in.entropy = entropy;
  in.confidence = entropy;
  in.mark = mark;
  in.signals = {{"ref_logprob", ref_logprob}, {"margin", margin}, {"min_p_logprob", min_p_logprob}};
  return in;
}

ObjectiveResult run_objective(const Method& method, const ObjectiveConfig& objective, const LossCase& unmarked,
                              size_t size, int64_t response_limit) {
  ObjectiveResult result;
  LossCase mini = unmarked;
  std::optional<Selection> selection = method.needs().selection;
  if (selection && mini.mark.empty()) {
    mini.mark.resize(mini.logprob.size());
    select_tokens(method, objective, mini.input(), mini.mark);
  }
  LossInput whole = mini.input();
  whole.only_marked = selection && selection->only_marked;
  Denominators total = denominators(objective, whole, response_limit);
  if (size == 0) size = std::max<size_t>(1, mini.sequences.size());
  LossBuffer buffer;
  for (size_t first = 0; first < mini.sequences.size(); first += size) {
    LossCase micro = mini.slice(first, size);
    LossOutput out = buffer.view(micro.tokens(), method.needs().current);
    LossInput in = micro.input();
    in.only_marked = whole.only_marked;
    objective_gradients(method, objective, in, total, out, result.metrics);
    for (float loss : out.loss) result.loss += loss;
    result.d_logprob.insert(result.d_logprob.end(), out.d_logprob.begin(), out.d_logprob.end());
    result.d_entropy.insert(result.d_entropy.end(), out.d_entropy.begin(), out.d_entropy.end());
    result.d_likely.resize(result.d_logprob.size());
    for (const auto& [key, d] : out.d_signals) std::ranges::copy(d, result.d_likely.end() - micro.tokens());
  }
  return result;
}

}  // namespace ucas::testing
