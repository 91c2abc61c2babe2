#include "train/update/loss_arrays.h"

#include <algorithm>
#include <optional>

#include "objective/loss/rollout_correction.h"

namespace ucas {

namespace {

bool only_marked(const Method& method) {
  std::optional<Selection> selection = method.needs().selection;
  return selection && selection->only_marked;
}

}  // namespace

void LossArrays::append(const ObjectiveInput& in, std::span<const int64_t> responses) {
  for (int64_t index : responses) {
    const Response& o = in.batch.responses[index];
    sequences.push_back({static_cast<int64_t>(old_logprob.size()), o.length, index, o.group});
    for (int64_t t = o.first; t < o.first + o.length; ++t) place.push_back(t);
    auto take = [&](auto from, auto& to) {
      if (from.empty()) return;
      auto part = from.subspan(o.first, o.length);
      to.insert(to.end(), part.begin(), part.end());
    };
    take(std::span(in.batch.old_logprob), old_logprob);
    take(std::span(in.batch.sampler_logprob()), rollout_logprob);
    take(in.advantage, advantage);
    take(std::span(in.batch.ref_logprob), ref_logprob);
    take(std::span(in.batch.min_p_logprob), min_p_logprob);
    take(in.step_mark, mark);
  }
}

void LossArrays::append_old(const ObjectiveInput& in, std::span<const int64_t> responses) {
  for (int64_t index : responses) {
    const Response& o = in.batch.responses[index];
    auto take = [&](const std::vector<float>& from, std::vector<float>& to) {
      auto part = Batch::tokens(from, o);
      to.insert(to.end(), part.begin(), part.end());
    };
    take(in.batch.old_logprob, logprob);
    take(in.batch.entropy, entropy);
    take(in.batch.confidence, confidence);
  }
}

void LossArrays::append(const HeadStats& stats) {
  auto add = [](const at::Tensor& from, std::vector<float>& to) {
    std::vector<float> values = to_host(from);
    to.insert(to.end(), values.begin(), values.end());
  };
  add(stats.logprob, logprob);
  add(stats.entropy, entropy);
  add(stats.confidence, confidence);
  if (stats.likely.defined()) add(stats.margin, margin);
}

LossInput LossArrays::view(const ObjectiveInput& in) const {
  return {.sequences = sequences,
          .logprob = logprob,
          .entropy = entropy,
          .confidence = confidence,
          .old_logprob = old_logprob,
          .rollout_logprob = rollout_logprob,
          .advantage = advantage,
          .ref_logprob = ref_logprob,
          .mark = mark,
          .seed = in.seed,
          .objective = &in.config,
          .only_marked = only_marked(in.method),
          .margin = margin,
          .min_p_logprob = min_p_logprob};
}

LossInput LossArrays::view(const ObjectiveInput& in, const RowRange& range, std::vector<Sequence>& pieces) const {
  LossInput part = view(in);
  for (auto* values : {&part.logprob, &part.entropy, &part.confidence, &part.old_logprob, &part.rollout_logprob,
                       &part.advantage, &part.ref_logprob, &part.margin, &part.min_p_logprob})
    if (!values->empty()) *values = values->subspan(range.first, range.count);
  if (!mark.empty()) part.mark = part.mark.subspan(range.first, range.count);
  pieces.clear();
  for (const Sequence& s : sequences) {
    const int64_t begin = std::max(s.first, range.first);
    const int64_t end = std::min(s.first + s.length, range.first + range.count);
    if (begin < end) pieces.push_back({begin - range.first, end - begin, s.response, s.group});
  }
  part.sequences = pieces;
  return part;
}

}  // namespace ucas
