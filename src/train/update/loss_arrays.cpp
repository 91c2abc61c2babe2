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
  const std::vector<TokenSignal> current = in.method.needs().current;
  const auto of_now = [&](const std::string& key) {
    return std::ranges::any_of(current, [&](const TokenSignal& signal) { return signal.key == key; });
  };
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
    for (const auto& [key, values] : in.batch.signals)
      if (!of_now(key)) take(std::span(values), signals[key]);
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

void LossArrays::append(const HeadStats& stats, std::span<const TokenSignal> current) {
  auto add = [](const at::Tensor& from, std::vector<float>& to) {
    std::vector<float> values = to_host(from);
    to.insert(to.end(), values.begin(), values.end());
  };
  add(stats.logprob, logprob);
  add(stats.entropy, entropy);
  add(stats.confidence, confidence);
  for (size_t k = 0; k < current.size(); ++k) add(stats.signals[k], signals[current[k].key]);
}

LossInput LossArrays::view(const ObjectiveInput& in) const {
  LossInput all{.sequences = sequences,
                .logprob = logprob,
                .entropy = entropy,
                .confidence = confidence,
                .old_logprob = old_logprob,
                .rollout_logprob = rollout_logprob,
                .advantage = advantage,
                .mark = mark,
                .seed = in.seed,
                .objective = &in.config,
                .only_marked = only_marked(in.method)};
  for (const auto& [key, values] : signals) all.signals.emplace_back(key, values);
  return all;
}

LossInput LossArrays::view(const ObjectiveInput& in, const RowRange& range, std::vector<Sequence>& pieces) const {
  LossInput part = view(in);
  for (auto* values :
       {&part.logprob, &part.entropy, &part.confidence, &part.old_logprob, &part.rollout_logprob, &part.advantage})
    if (!values->empty()) *values = values->subspan(range.first, range.count);
  for (auto& [key, values] : part.signals) values = values.subspan(range.first, range.count);
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
