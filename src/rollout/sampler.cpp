#include "rollout/sampler.h"

#include <algorithm>
#include <cmath>

#include "kernels/lm_head.h"

namespace ucas {

namespace {

constexpr int64_t kBlock = 64;  // columns summed at a time in the search for the drawn one

// Of kBlock values in a fixed order: 16 running sums, then pairwise. Written so that it vectorises at any width.
double block_sum(const float* p) {
  float lane[16] = {};
  for (int64_t i = 0; i < kBlock; i += 16) {
    for (int64_t j = 0; j < 16; ++j) lane[j] += p[i + j];
  }
  for (int64_t width = 8; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0];
}

double sum(const float* p, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += p[i];
  return total;
}

// First index whose running sum passes `target`; the last one with any mass where rounding lets none pass.
int64_t search(const float* p, int64_t n, double target) {
  double running = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < n; ++i) {
    running += p[i];
    if (running > target) return i;
    if (p[i] > 0) last = i;
  }
  return last;
}

// out[v] = p_v / temperature: the LM head's own gradient with respect to the logits of -log-prob, without its 1[v=y].
void probabilities(std::span<const float> logits, float inverse_temperature, double lse, float* out) {
  kernels::RowGradient row{};
  row.lse = static_cast<float>(lse);
  row.g = -1;
  row.inverse_temperature = inverse_temperature;
  const auto n = static_cast<int64_t>(logits.size());
  for (int64_t c = 0; c < n; c += kernels::kTile) {
    kernels::row_gradient(logits.data() + c, std::min(kernels::kTile, n - c), -1, row, out + c);
  }
}

}  // namespace

Sampler::Sampler(const SamplingConfig& config) : config_(config), truncated_(config.top_k > 0 || config.top_p < 1) {}

Drawn Sampler::draw(std::span<const float> logits, double uniform) {
  const bool greedy = config_.temperature == 0;
  const float inverse_temperature = greedy ? 1.0f : static_cast<float>(1.0 / config_.temperature);
  const auto n = static_cast<int64_t>(logits.size());
  const kernels::RowStats stats = kernels::stats_of_row(logits.data(), n, inverse_temperature);
  const double lse = kernels::lse_of(stats);
  Drawn drawn;
  if (!std::isfinite(lse) || !std::isfinite(stats.total)) return drawn;

  double kept_mass = 1;
  if (greedy) {
    drawn.token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  } else {
    probability_.resize(logits.size());
    probabilities(logits, inverse_temperature, lse, probability_.data());
    drawn.token = truncated_ ? draw_truncated(uniform, kept_mass) : draw_from_all(uniform);
  }
  drawn.logit = logits[static_cast<size_t>(drawn.token)];
  const kernels::TokenStats token = kernels::token_stats(stats, drawn.logit, inverse_temperature, n);
  drawn.logprob = token.logprob;
  if (kept_mass < 1) drawn.logprob = static_cast<float>(token.logprob - std::log(kept_mass));
  drawn.entropy = token.entropy;
  drawn.confidence = token.confidence;
  return drawn;
}

int32_t Sampler::draw_from_all(double uniform) {
  const float* p = probability_.data();
  const auto n = static_cast<int64_t>(probability_.size());
  const int64_t blocks = n / kBlock;
  block_.resize(static_cast<size_t>(blocks));
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += block_[static_cast<size_t>(b)] = block_sum(p + b * kBlock);
  double target = uniform * (total + sum(p + blocks * kBlock, n - blocks * kBlock));
  for (int64_t b = 0; b < blocks; ++b) {
    const double mass = block_[static_cast<size_t>(b)];
    const bool last = b + 1 == blocks && blocks * kBlock == n;
    if (target < mass || last) return static_cast<int32_t>(b * kBlock + search(p + b * kBlock, kBlock, target));
    target -= mass;
  }
  return static_cast<int32_t>(blocks * kBlock + search(p + blocks * kBlock, n - blocks * kBlock, target));
}

void Sampler::gather(float threshold) {
  candidates_.clear();
  for (size_t v = 0; v < probability_.size(); ++v) {
    if (probability_[v] >= threshold) candidates_.push_back({probability_[v], static_cast<int32_t>(v)});
  }
}

int32_t Sampler::draw_truncated(double uniform, double& kept_mass) {
  const auto n = static_cast<int64_t>(probability_.size());
  const double total = sum(probability_.data(), n);
  const int64_t k = config_.top_k > 0 ? std::min(config_.top_k, n) : n;
  // All ids above a threshold are a prefix of the order by probability, so the cut needs no sort of the whole row:
  // lower the threshold until the prefix holds k ids, or the mass where only top-p is asked for.
  const float largest = *std::max_element(probability_.begin(), probability_.end());
  for (float threshold = largest / 64;; threshold /= 4096) {
    if (threshold < 1e-30f) threshold = 0;
    gather(threshold);
    if (threshold == 0) break;
    if (config_.top_k > 0) {
      if (static_cast<int64_t>(candidates_.size()) >= k) break;
    } else {
      double mass = 0;
      for (const Candidate& c : candidates_) mass += c.probability;
      if (mass >= config_.top_p * total) break;
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  });
  candidates_.resize(std::min(candidates_.size(), static_cast<size_t>(k)));

  // top-p over what top-k left: the shortest prefix that holds the mass, one id at least.
  double left = total;
  if (k < n) {
    left = 0;
    for (const Candidate& c : candidates_) left += c.probability;
  }
  double kept = 0;
  size_t count = 0;
  while (count < candidates_.size() && (count == 0 || config_.top_p >= 1 || kept < config_.top_p * left)) {
    kept += candidates_[count++].probability;
  }
  kept_mass = static_cast<int64_t>(count) == n ? 1 : std::min(1.0, kept / total);
  const double target = uniform * kept;
  double running = 0;
  for (size_t i = 0; i < count; ++i) {
    running += candidates_[i].probability;
    if (running > target) return candidates_[i].id;
  }
  while (count > 1 && candidates_[count - 1].probability == 0) --count;
  return candidates_[count - 1].id;
}

}  // namespace ucas
