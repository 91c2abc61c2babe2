#include "objective/aggregate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "objective/loss/kl.h"

namespace ucas {

namespace {

std::span<float> of(std::span<float> values, const Sequence& s) { return values.subspan(s.first, s.length); }

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

// m_it of every token, [n]: 0 where the loss leaves it out.
std::vector<float> counted_tokens(const LossInput& in, size_t n) {
  UCAS_CHECK(in.mark.empty() || in.mark.size() == n, "marks and tokens differ in number");
  std::vector<float> counted(n, 1.0f);
  for (size_t t = 0; t < n; ++t) {
    if (in.only_marked && !in.mark.empty() && in.mark[t] == 0) counted[t] = 0;
  }
  return counted;
}

RolloutCorrection correction_of(const ObjectiveConfig& objective, const LossInput& in) {
  return rollout_correction(objective, in.sequences, in.old_logprob, in.rollout_logprob);
}

// Those of a part's tokens; none where there are none of the whole.
template <class T>
std::span<const T> part_of(const std::vector<T>& whole, int64_t first, size_t n) {
  return whole.empty() ? std::span<const T>() : std::span(whole).subspan(first, n);
}

// The losses of tokens, before aggregation.
void run_token_loss(const PolicyLoss& loss, const ObjectiveConfig& objective, LossInput in,
                    std::span<const float> factor, LossOutput& out) {
  size_t n = in.logprob.size();
  UCAS_CHECK(in.old_logprob.size() == n && in.advantage.size() == n && in.entropy.size() == n,
             "spans differ in length");
  UCAS_CHECK(out.loss.size() == n && out.d_logprob.size() == n && out.d_entropy.size() == n &&
                 out.d_confidence.size() == n && out.clipped.size() == n,
             "the output does not fit the input");
  for (auto values : out.numbers()) std::ranges::fill(values, 0.0f);
  std::ranges::fill(out.clipped, uint8_t{0});
  out.absolute_drift = false;
  in.objective = &objective;
  loss.token_loss(in, out);
  for (size_t t = 0; t < factor.size(); ++t) {
    for (auto values : out.numbers()) values[t] *= factor[t];
  }
}

// Plain means over the counted tokens of a sequence.
void note_tokens(const LossInput& in, const LossOutput& out, const Sequence& s, std::span<const float> counted,
                 double token_count, LossMetrics& metrics) {
  for (int64_t t = s.first; t < s.first + s.length; ++t) {
    if (counted[t] == 0) continue;
    double share = counted[t] / token_count;
    double drift = static_cast<double>(in.old_logprob[t]) - in.logprob[t];
    metrics.clipfrac += out.clipped[t] == 1 ? share : 0;
    metrics.clipfrac_lower += out.clipped[t] == 2 ? share : 0;
    metrics.ppo_kl += share * (out.absolute_drift ? std::abs(drift) : drift);
  }
}

// A token's loss and derivatives times its weight, the entropy bonus and the KL loss added.
void weigh_token(const ObjectiveConfig& objective, const LossInput& in, std::span<const float> reference,
                 LossOutput& out, int64_t t, double w, LossMetrics& metrics) {
  if (w == 0) {  // not counted: no gradient, whatever the loss wrote
    for (auto values : {out.loss, out.d_logprob, out.d_entropy, out.d_confidence}) values[t] = 0;
    for (const auto& [key, values] : out.d_signals) values[t] = 0;
    out.clipped[t] = 0;
    return;
  }
  KlTerm kl = reference.empty() ? KlTerm{} : kl_term(objective.kl_estimator, in.logprob[t], reference[t]);
  metrics.pg_loss += w * out.loss[t];
  metrics.entropy += w * in.entropy[t];
  metrics.kl_loss += w * kl.value;
  out.loss[t] =
      static_cast<float>(w * (out.loss[t] - objective.entropy_coeff * in.entropy[t] + objective.kl_coeff * kl.value));
  out.d_logprob[t] = static_cast<float>(w * (out.d_logprob[t] + objective.kl_coeff * kl.d_logprob));
  out.d_entropy[t] = static_cast<float>(w * (out.d_entropy[t] - objective.entropy_coeff));
  out.d_confidence[t] = static_cast<float>(w * out.d_confidence[t]);
  for (const auto& [key, values] : out.d_signals) values[t] = static_cast<float>(w * values[t]);
}

}  // namespace

Denominators& Denominators::operator+=(const Denominators& other) {
  token_count += other.token_count;
  sequences += other.sequences;
  rows += other.rows;
  for (const auto& [group, tokens] : other.group_tokens) group_tokens[group] += tokens;
  return *this;
}

std::span<const float> LossInput::signal(std::string_view key) const {
  const auto found = std::ranges::find_if(signals, [&](const auto& one) { return one.first == key; });
  UCAS_CHECK(found != signals.end() && found->second.size() == old_logprob.size(),
             str("each token needs its ", key).c_str());
  return found->second;
}

std::span<float> LossOutput::d_signal(std::string_view key) const {
  const auto found = std::ranges::find_if(d_signals, [&](const auto& one) { return one.first == key; });
  UCAS_CHECK(found != d_signals.end(), str("no gradient runs through ", key).c_str());
  return found->second;
}

std::vector<std::span<float>> LossOutput::numbers() const {
  std::vector<std::span<float>> all = {loss, d_logprob, d_entropy, d_confidence};
  for (const auto& [key, values] : d_signals) all.push_back(values);
  return all;
}

LossOutput LossBuffer::view(int64_t tokens, std::span<const TokenSignal> current) {
  for (auto* values : {&loss_, &d_logprob_, &d_entropy_, &d_confidence_}) values->resize(tokens);
  clipped_.resize(tokens);
  LossOutput out{loss_, d_logprob_, d_entropy_, d_confidence_, clipped_};
  for (const TokenSignal& signal : current) {
    if (!signal.derivatives) continue;
    const auto it = d_signals_.try_emplace(signal.key).first;
    it->second.resize(tokens);
    out.d_signals.emplace_back(it->first, it->second);
  }
  return out;
}

void select_tokens(const PolicyLoss& loss, const ObjectiveConfig& objective, LossInput in, std::span<uint8_t> mark) {
  UCAS_CHECK(mark.size() == in.logprob.size(), "marks and tokens differ in number");
  in.objective = &objective;
  std::ranges::fill(mark, uint8_t{0});
  loss.select(in, mark);
}

Denominators denominators(const ObjectiveConfig& objective, const LossInput& whole_mini, int64_t response_limit) {
  Denominators total;
  total.norm_length = objective.norm_length > 0 ? objective.norm_length : static_cast<double>(response_limit);
  int64_t n = 0;
  for (const Sequence& s : whole_mini.sequences) n = std::max(n, s.first + s.length);
  std::vector<float> counted = counted_tokens(whole_mini, n);
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
  UCAS_CHECK(divisor > 0, "a sequence must be counted in its mini-batch");
  for (float& w : weight) w = static_cast<float>(w / divisor);
}

TokenShares token_shares(const ObjectiveConfig& objective, const LossInput& micro, const Denominators& total) {
  TokenShares shares{.token_count = total.token_count, .correction = correction_of(objective, micro)};
  shares.counted = counted_tokens(micro, micro.old_logprob.size());
  shares.weight = shares.counted;
  for (const Sequence& s : micro.sequences) {
    aggregation_weights(objective.aggregation, total, s.group, of(shares.weight, s));
  }
  return shares;
}

void objective_gradients(const PolicyLoss& loss, const ObjectiveConfig& objective, const LossInput& part,
                         const TokenShares& shares, int64_t first, LossOutput& out, LossMetrics& metrics) {
  const size_t n = part.logprob.size();
  run_token_loss(loss, objective, part, part_of(shares.correction.weight, first, n), out);
  std::span<const float> reference;
  if (objective.kl_coeff != 0) reference = part.signal("ref_logprob");
  const std::span<const float> counted = part_of(shares.counted, first, n), weight = part_of(shares.weight, first, n);
  for (const Sequence& s : part.sequences) {
    note_tokens(part, out, s, counted, shares.token_count, metrics);
    for (int64_t t = s.first; t < s.first + s.length; ++t) {
      weigh_token(objective, part, reference, out, t, weight[t], metrics);
    }
  }
}

void objective_gradients(const PolicyLoss& loss, const ObjectiveConfig& objective, const LossInput& micro,
                         const Denominators& total, LossOutput& out, LossMetrics& metrics) {
  objective_gradients(loss, objective, micro, token_shares(objective, micro, total), 0, out, metrics);
}

}  // namespace ucas
