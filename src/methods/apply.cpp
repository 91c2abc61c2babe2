#include "methods/apply.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

// Tokens of the responses that are trained; the loss reads an array per token, and a method may want any of them.
LossInput input_of(const Batch& batch, std::span<const float> advantage, std::span<const Sequence> sequences,
                   std::span<const float> zeros) {
  const auto or_zeros = [&](const std::vector<float>& values) {
    return values.size() == batch.token.size() ? std::span<const float>(values) : zeros;
  };
  LossInput in;
  in.sequences = sequences;
  in.logprob = in.old_logprob = or_zeros(batch.old_logprob);
  in.rollout_logprob = in.old_logprob;  // the policy that sampled: no mismatch here
  in.advantage = advantage;
  in.entropy = or_zeros(batch.entropy);
  in.confidence = or_zeros(batch.confidence);
  in.ref_logprob = or_zeros(batch.ref_logprob);
  in.margin = or_zeros(batch.margin);
  in.min_p_logprob = batch.min_p_logprob;
  in.seed = batch.seed;
  return in;
}

}  // namespace

std::string missing(const Needs& needs, const Batch& batch) {
  size_t n = batch.token.size();
  if (needs.critic && batch.value.size() != n) return "the values of a critic (\"value\")";
  if (needs.reference && batch.ref_logprob.size() != n) return "the reference's log-probs (\"ref_logprob\")";
  if (needs.prm && batch.prm_logratio.size() != n) return "the reward model's log-ratios (\"prm_logratio\")";
  if (needs.teacher && batch.teacher_logprob.size() != n) return "the teacher's log-probs (\"teacher_logprob\")";
  if (needs.confidence && batch.confidence.size() != n) return "the confidence of every token (\"confidence\")";
  if (needs.logit && batch.logit.size() != n) return "the chosen logit of every token (\"logit\")";
  if (needs.old_logprob && batch.old_logprob.size() != n) return "the log-prob of every token (\"old_logprob\")";
  if (needs.entropy && batch.entropy.size() != n) return "the entropy of every token (\"entropy\")";
  if (needs.margin && batch.margin.size() != n) return "the margin of every token (\"margin\")";
  if (needs.min_p && batch.min_p_logprob.size() != n)
    return "the log-prob of every token under min-p (\"min_p_logprob\")";
  return "";
}

Advantages compute_advantages(const Method& method, const Batch& batch) {
  std::string lacks = missing(method.needs(), batch);
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

std::vector<float> first_update(const Method& method, const Batch& batch, std::span<const float> advantage) {
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    const Response& o = batch.responses[i];
    if (o.trained) sequences.push_back({o.first, o.length, static_cast<int64_t>(i), o.group});
  }
  const std::vector<float> zeros(batch.token.size());
  LossInput in = input_of(batch, advantage, sequences, zeros);
  in.objective = &method.objective_defaults();
  std::vector<uint8_t> mark;
  if (const auto selection = method.needs().selection) {
    mark.resize(batch.token.size());
    method.select(in, mark);
    in.mark = mark;
    in.only_marked = selection->only_marked;
  }
  LossBuffer buffer;
  LossOutput out = buffer.view(batch.token_count());
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
