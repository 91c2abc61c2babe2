#include "methods/apply.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

std::vector<NeededModel> Needs::models() const {
  std::vector<NeededModel> all;
  if (reference) all.push_back({"reference", "", signals::ref_logprob()});
  if (critic) all.push_back({"critic", critic->model, signals::value(), 1, 1});
  if (prm) all.push_back({"reward model", prm->model, signals::prm_logratio(), 2, 1});
  if (teacher) all.push_back({"teacher", *teacher, signals::teacher_logprob()});
  return all;
}

std::vector<TokenSignal> Needs::all_signals() const {
  std::vector<TokenSignal> all = signals;
  for (const NeededModel& model : models()) all.push_back(model.gives);
  return all;
}

bool Needs::reads(std::string_view key) const {
  return std::ranges::any_of(signals, [&](const TokenSignal& signal) { return signal.key == key; });
}

bool Needs::reads_tokens() const {
  return std::ranges::any_of(signals, [](const TokenSignal& signal) { return signal.reads.any(); });
}

bool Needs::sampler_knows() const {
  return std::ranges::none_of(signals, [](const TokenSignal& signal) { return signal.compute || signal.after_last; });
}

std::string missing(std::span<const TokenSignal> signals, const Batch& batch) {
  for (const TokenSignal& signal : signals) {
    const bool held = signal.after_last ? batch.has_tails : batch.signal(signal.key).size() == batch.token.size();
    if (!held) return str(signal.words, " (\"", signal.key, "\")");
  }
  return "";
}

Advantages compute_advantages(const Method& method, const Batch& batch) {
  std::string lacks = missing(method.needs().all_signals(), batch);
  if (!lacks.empty()) {
    throw Error(ErrorKind::unsupported, str(method.title(), " needs ", lacks,
                                            ", which the batch does not hold; add it to the "
                                            "batch, or take another method"));
  }
  Advantages computed;
  computed.advantage.assign(batch.token.size(), std::nanf(""));  // a token that is left out shall be noticed
  method.advantages(batch, computed.advantage, computed.recording);
  for (const Response& o : batch.responses) {
    if (!o.trained) std::ranges::fill(Batch::tokens(computed.advantage, o), 0.0f);
  }
  return computed;
}

Advantages compute_advantages(const std::string& name, const Batch& batch, const std::string& preset,
                              const std::vector<Setting>& settings) {
  std::unique_ptr<Method> method = make_method(name, preset);
  apply(*method, settings);
  method->validate();
  return compute_advantages(*method, batch);
}

std::vector<Sequence> trained_sequences(const Batch& batch) {
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    const Response& o = batch.responses[i];
    if (o.trained) sequences.push_back({o.first, o.length, static_cast<int64_t>(i), o.group});
  }
  return sequences;
}

LossInput before_updates(const Batch& batch, std::span<const float> advantage, std::span<const Sequence> sequences) {
  return {.sequences = sequences,
          .logprob = batch.old_logprob,
          .entropy = batch.entropy,
          .confidence = batch.confidence,
          .old_logprob = batch.old_logprob,
          .rollout_logprob = batch.sampler_logprob(),
          .advantage = advantage,
          .seed = batch.seed,
          .signals = batch.all_signals()};
}

std::vector<float> first_update(const Method& method, const Batch& batch, std::span<const float> advantage) {
  const std::vector<Sequence> sequences = trained_sequences(batch);
  const std::vector<float> zeros(batch.token.size());
  LossInput in = before_updates(batch, advantage, sequences);
  in.rollout_logprob = in.old_logprob;  // no mismatch here
  in.objective = &method.objective_defaults();
  const std::vector<TokenSignal> current = method.needs().current;
  for (const TokenSignal& signal : current) in.signals.emplace_back(signal.key, batch.signal(signal.key));
  std::vector<std::span<const float>*> read = {&in.logprob, &in.old_logprob, &in.rollout_logprob, &in.entropy,
                                               &in.confidence};
  for (auto& [key, values] : in.signals) read.push_back(&values);
  for (auto* values : read)
    if (values->empty()) *values = zeros;
  std::vector<uint8_t> mark;
  if (const auto selection = method.needs().selection) {
    mark.resize(batch.token.size());
    method.select(in, mark);
    in.mark = mark;
    in.only_marked = selection->only_marked;
  }
  LossBuffer buffer;
  LossOutput out = buffer.view(batch.token_count(), current);
  for (auto values : out.numbers()) std::ranges::fill(values, 0.0f);
  std::ranges::fill(out.clipped, uint8_t{0});
  method.token_loss(in, out);
  std::vector<float> asked(batch.token.size());
  for (const Sequence& s : sequences) {
    for (int64_t t = s.first; t < s.first + s.length; ++t) asked[t] = -out.d_logprob[t];
  }
  return asked;
}

}  // namespace ucas
