#include "methods/aggregate.h"

#include <algorithm>

#include "base/error.h"
#include "methods/kl.h"
#include "methods/mismatch.h"

namespace ucas {

namespace {

std::span<float> of(std::span<float> values, const Sequence& s) {
  return values.subspan(static_cast<size_t>(s.first), static_cast<size_t>(s.length));
}

double sum(std::span<const float> values) {
  double total = 0;
  for (float v : values) total += v;
  return total;
}

// One sequence of M_i = `weight` counted tokens.
void count(Denominators& total, int64_t group, double weight) {
  total.rows += 1;
  if (weight == 0) return;
  total.sequences += 1;
  total.token_count += weight;
  total.group_tokens[group] += weight;
}

// The method's own token losses, before aggregation.
void run_token_loss(const Method& method, const ObjectiveConfig& objective, LossInput in, LossOutput& out) {
  size_t n = in.logprob.size();
  UCAS_CHECK(in.old_logprob.size() == n && in.advantage.size() == n && in.entropy.size() == n,
             "spans differ in length");
  UCAS_CHECK(out.loss.size() == n && out.d_logprob.size() == n && out.d_entropy.size() == n &&
                 out.d_confidence.size() == n && out.clipped.size() == n,
             "the output does not fit the input");
  for (auto values : {out.loss, out.d_logprob, out.d_entropy, out.d_confidence}) std::ranges::fill(values, 0.0f);
  std::ranges::fill(out.clipped, uint8_t{0});
  RolloutCorrection correction = rollout_correction(objective, in.sequences, in.old_logprob, in.rollout_logprob);
  in.objective = &objective;
  in.rejected = correction.rejected;
  method.token_loss(in, out);
  for (size_t t = 0; t < correction.weight.size(); ++t) {
    for (auto values : {out.loss, out.d_logprob, out.d_entropy, out.d_confidence}) values[t] *= correction.weight[t];
  }
}

// The counts that a micro-batch's weights divide by, and the factor on top.
struct Share {
  Denominators counts;
  double factor = 1;
};
Share share_of(const ObjectiveConfig& objective, const LossInput& in, std::span<float> counted,
               const Denominators& total) {
  if (objective.accumulation == Accumulation::exact) return {total, 1};
  Share share;
  share.counts.norm_length = total.norm_length;
  for (const Sequence& s : in.sequences) count(share.counts, s.group, sum(of(counted, s)));
  share.factor = share.counts.rows / total.rows;
  return share;
}

}  // namespace

Denominators& Denominators::operator+=(const Denominators& other) {
  token_count += other.token_count;
  sequences += other.sequences;
  rows += other.rows;
  for (const auto& [group, tokens] : other.group_tokens) group_tokens[group] += tokens;
  return *this;
}

LossOutput LossBuffer::view(int64_t tokens) {
  size_t n = static_cast<size_t>(tokens);
  for (auto* values : {&loss_, &d_logprob_, &d_entropy_, &d_confidence_}) values->resize(n);
  clipped_.resize(n);
  return {loss_, d_logprob_, d_entropy_, d_confidence_, clipped_};
}

void select_tokens(const Method& method, const ObjectiveConfig& objective, LossInput in, std::span<uint8_t> mark) {
  UCAS_CHECK(mark.size() == in.logprob.size(), "marks do not fit the tokens");
  RolloutCorrection correction = rollout_correction(objective, in.sequences, in.old_logprob, in.rollout_logprob);
  in.objective = &objective;
  in.rejected = correction.rejected;
  std::ranges::fill(mark, uint8_t{0});
  method.select(in, mark);
}

void counted_tokens(const Method& method, const ObjectiveConfig& objective, const LossInput& in,
                    std::span<float> counted) {
  UCAS_CHECK(in.mark.empty() || in.mark.size() == counted.size(), "marks do not fit the tokens");
  RolloutCorrection correction = rollout_correction(objective, in.sequences, in.old_logprob, in.rollout_logprob);
  for (size_t t = 0; t < counted.size(); ++t) {
    bool rejected = !correction.rejected.empty() && correction.rejected[t] != 0;
    counted[t] = !rejected && (in.mark.empty() || method.counted(in.mark[t])) ? 1.0f : 0.0f;
  }
}

Denominators denominators(const Method& method, const ObjectiveConfig& objective, const LossInput& whole_mini,
                          int64_t response_limit) {
  Denominators total;
  total.norm_length = objective.norm_length > 0 ? objective.norm_length : static_cast<double>(response_limit);
  size_t n = 0;
  for (const Sequence& s : whole_mini.sequences) n = std::max(n, static_cast<size_t>(s.first + s.length));
  std::vector<float> counted(n);
  counted_tokens(method, objective, whole_mini, counted);
  for (const Sequence& s : whole_mini.sequences) count(total, s.group, sum(of(counted, s)));
  return total;
}

void aggregation_weights(Aggregation aggregation, const Denominators& total, int64_t group, std::span<float> weight) {
  double own = sum(weight);  // M_i
  if (own == 0) return;      // an empty response has no share, whatever the mode
  double divisor = 1;
  switch (aggregation) {
    case Aggregation::token_mean:
      divisor = total.token_count;
      break;
    case Aggregation::seq_mean_token_mean:
      divisor = total.sequences * own;
      break;
    case Aggregation::seq_mean_token_sum:
      divisor = total.sequences;
      break;
    case Aggregation::seq_mean_token_sum_norm:
      divisor = total.norm_length;
      break;
    case Aggregation::row_mean_token_sum_norm:
      divisor = total.rows * total.norm_length;
      break;
    case Aggregation::group_token_mean: {
      auto tokens = total.group_tokens.find(group);
      divisor =
          tokens == total.group_tokens.end() ? 0 : static_cast<double>(total.group_tokens.size()) * tokens->second;
      break;
    }
  }
  UCAS_CHECK(divisor > 0, "the mini-batch was counted without this sequence");
  for (float& w : weight) w = static_cast<float>(w / divisor);
}

void objective_gradients(const Method& method, const ObjectiveConfig& objective, const LossInput& in,
                         const Denominators& total, LossOutput& out, LossMetrics& metrics) {
  run_token_loss(method, objective, in, out);
  UCAS_CHECK(objective.kl_coeff == 0 || in.ref_logprob.size() == in.logprob.size(), "a KL loss needs the reference");
  std::vector<float> weight(in.logprob.size());
  counted_tokens(method, objective, in, weight);
  Share share_here = share_of(objective, in, weight, total);
  for (const Sequence& s : in.sequences) {
    size_t first = static_cast<size_t>(s.first), end = first + static_cast<size_t>(s.length);
    for (size_t t = first; t < end; ++t) {  // plain means over counted tokens
      if (weight[t] == 0) continue;
      double share = weight[t] / total.token_count;
      metrics.clipfrac += out.clipped[t] == 1 ? share : 0;
      metrics.clipfrac_lower += out.clipped[t] == 2 ? share : 0;
      metrics.ppo_kl += share * method.drift(in.logprob[t], in.old_logprob[t]);
    }
    aggregation_weights(objective.aggregation, share_here.counts, s.group, of(weight, s));
    for (size_t t = first; t < end; ++t) {
      double w = weight[t] * share_here.factor;
      if (w == 0) {  // not counted: no gradient, whatever the method wrote
        out.loss[t] = out.d_logprob[t] = out.d_entropy[t] = out.d_confidence[t] = 0;
        out.clipped[t] = 0;
        continue;
      }
      KlTerm kl =
          objective.kl_coeff == 0 ? KlTerm{} : kl_term(objective.kl_estimator, in.logprob[t], in.ref_logprob[t]);
      metrics.pg_loss += w * out.loss[t];
      metrics.entropy += w * in.entropy[t];
      metrics.kl_loss += w * kl.value;
      out.loss[t] = static_cast<float>(
          w * (out.loss[t] - objective.entropy_coeff * in.entropy[t] + objective.kl_coeff * kl.value));
      out.d_logprob[t] = static_cast<float>(w * (out.d_logprob[t] + objective.kl_coeff * kl.d_logprob));
      out.d_entropy[t] = static_cast<float>(w * (out.d_entropy[t] - objective.entropy_coeff));
      out.d_confidence[t] = static_cast<float>(w * out.d_confidence[t]);
    }
  }
}

}  // namespace ucas
