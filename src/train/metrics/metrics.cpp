#include "train/metrics/metrics.h"

#include <malloc.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "base/str.h"
#include "core/metrics.h"
#include "results/stats/intervals.h"

namespace ucas {

void StepMetrics::put(const std::string& name, double value) {
  for (auto& [known, old] : values_) {
    if (known == name) {
      old = value;
      return;
    }
  }
  values_.emplace_back(name, value);
}

void StepMetrics::set_spread(const MetricSpread& spread, std::span<const float> values) {
  double sum = 0, high = -std::numeric_limits<double>::infinity(), low = -high;
  for (float v : values) {
    sum += v;
    high = std::max(high, static_cast<double>(v));
    low = std::min(low, static_cast<double>(v));
  }
  set(spread.mean, sum / static_cast<double>(values.size()));
  set(spread.max, high);
  set(spread.min, low);
}

namespace {

const Metric& share_of(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::equal:
      return metric::verifier_equal_share;
    case VerdictKind::unequal:
      return metric::verifier_unequal_share;
    case VerdictKind::unparseable:
      return metric::verifier_unparseable_share;
    case VerdictKind::over_budget:
      return metric::verifier_over_budget_share;
  }
  return metric::verifier_unparseable_share;
}

}  // namespace

void record_collection(StepMetrics& m, const CollectStats& s) {
  auto share = [](int64_t part, int64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  m.set(metric::train_accuracy, s.correct_share);
  m.set(metric::train_num_gen_batches, static_cast<double>(s.gen_batches));
  m.set(metric::train_groups_generated, static_cast<double>(s.groups_generated));
  m.set(metric::train_groups_kept, static_cast<double>(s.groups_kept));
  m.set(metric::train_groups_trained, static_cast<double>(s.groups_trained));
  m.set(metric::train_solve_all, share(s.solve_all, s.groups_generated));
  m.set(metric::train_solve_none, share(s.solve_none, s.groups_generated));
  // A group of one has one verdict, and may have a gradient all the same: it does not count as dead.
  if (s.responses != s.groups_generated) {
    m.set(metric::train_dead_groups, share(s.dead, s.groups_generated));
  }
  m.set(metric::train_truncated_share, share(s.truncated, s.responses));
  m.set(metric::train_generated_tokens, static_cast<double>(s.generated_tokens));
  if (s.multi_turn) {
    m.set(metric::rollout_turns_mean, share(s.responses + s.inserts, s.responses));
    m.set(metric::rollout_inserted_tokens_mean, share(s.inserted_tokens, s.responses));
  }
  for (int kind = 0; kind < 4; ++kind) {
    m.set(share_of(static_cast<VerdictKind>(kind)), share(s.verdicts[kind], s.graded));
  }
}

namespace {

// Each part of the score apart, where there are several; and what overlong shaping takes off.
void record_terms(StepMetrics& m, const Batch& batch) {
  const auto spread = [&](const std::string& name, auto value) {
    std::vector<double> values;
    for (const Response& o : batch.responses) values.push_back(value(o));
    const Summary summary = summarize(values);
    m.set(metric::rewards_mean, {name}, summary.mean);
    m.set(metric::rewards_std, {name}, summary.std);
  };
  const size_t terms = batch.reward_terms.size();
  if (terms < 2) return;
  for (size_t k = 0; k < terms; ++k) {
    spread(batch.reward_terms[k].name, [&](const Response& o) { return static_cast<double>(o.terms[k]); });
  }
}

}  // namespace

void record_batch(StepMetrics& m, const Batch& batch, std::span<const float> advantage, int64_t response_limit,
                  int64_t vocabulary) {
  std::vector<float> score, reward, length, prompt;
  double at_limit = 0;
  for (const Response& o : batch.responses) {
    score.push_back(o.reward + o.kl_penalty);
    reward.push_back(o.reward);
    length.push_back(static_cast<float>(o.length));
    at_limit += o.length_with_inserts() == response_limit ? 1 : 0;
    prompt.push_back(static_cast<float>(batch.groups[o.group].prompt.size()));
  }
  m.set_spread(metric::critic_score, score);
  m.set_spread(metric::critic_rewards, reward);
  record_terms(m, batch);
  if (const std::vector<float> trained = batch.trained(advantage); !trained.empty()) {
    m.set_spread(metric::critic_advantages, trained);
  }
  m.set_spread(metric::response_length, length);
  m.set(metric::response_length_clip_ratio, at_limit / static_cast<double>(length.size()));
  m.set_spread(metric::prompt_length, prompt);
  const std::vector<float> confidences = batch.trained(batch.confidence), entropies = batch.trained(batch.entropy);
  if (confidences.empty()) return;  // every response is masked: nothing to say of the tokens that are trained
  m.set_spread(metric::self_certainty, confidences);
  double log_v = std::log(static_cast<double>(vocabulary));
  double entropy = 0;
  for (float h : entropies) entropy += h;
  entropy /= static_cast<double>(std::max<size_t>(1, entropies.size()));
  m.set(metric::actor_entropy, entropy);  // of the old policy, over the trained tokens
  m.set(metric::policy_kl_uniform_p, m.get(metric::self_certainty.mean) - log_v);  // KL(U||p) = C - ln V
  m.set(metric::policy_kl_p_uniform, log_v - entropy);                             // KL(p||U) = ln V - H
}

void record_mismatch(StepMetrics& m, const Mismatch& mismatch) {
  m.set(metric::rollout_logprob_diff_max, mismatch.max);
  m.set(metric::rollout_logprob_diff_mean, mismatch.mean);
  m.set(metric::rollout_logprob_diff_share, mismatch.share);
}

void record_losses(StepMetrics& m, std::span<const LossMetrics> updates, const ObjectiveConfig& objective) {
  auto mean = [&](double LossMetrics::* field) {
    double sum = 0;
    for (const LossMetrics& u : updates) sum += u.*field;
    return sum / static_cast<double>(std::max<size_t>(1, updates.size()));
  };
  m.set(metric::actor_pg_loss, mean(&LossMetrics::pg_loss));
  m.set(metric::actor_pg_clipfrac, mean(&LossMetrics::clipfrac));
  m.set(metric::actor_pg_clipfrac_lower, mean(&LossMetrics::clipfrac_lower));
  m.set(metric::actor_ppo_kl, mean(&LossMetrics::ppo_kl));
  if (objective.kl_coeff == 0) return;
  m.set(metric::actor_kl_loss, mean(&LossMetrics::kl_loss));
  m.set(metric::actor_kl_coef, objective.kl_coeff);
}

namespace {
struct PeakMark {
  double before = 0;    // the mark of the process when this began, if that could not be taken back
  double observed = 0;  // the most of what was read since
};
PeakMark peak_mark;  // of the one training that a process has at a time

double status_gb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != key) continue;
    double kib = 0;
    status >> kib;
    return kib / 1024 / 1024;
  }
  return 0;
}
}  // namespace

double resident_gb() { return status_gb("VmRSS:"); }

void begin_peak_resident() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ofstream("/proc/self/clear_refs") << "5";
  const double peak = status_gb("VmHWM:"), now = resident_gb();
  peak_mark = {peak > now + 0.001 ? peak : 0, now};
}

double peak_resident_gb() {
  peak_mark.observed = std::max(peak_mark.observed, resident_gb());
  const double peak = status_gb("VmHWM:");
  return peak > peak_mark.before ? peak : peak_mark.observed;
}

}  // namespace ucas
