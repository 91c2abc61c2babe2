#include "methods/first_update.h"

#include <algorithm>
#include <cmath>

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
