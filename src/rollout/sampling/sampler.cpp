#include "rollout/sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/lm_head.h"

namespace ucas {

namespace {

constexpr int64_t kBlock = 64;  // columns summed at a time in the search for the sampled one

constexpr int kBucketShift = 20;  // of a float's bits: 8 of exponent and 3 of mantissa stay
constexpr size_t kBuckets = size_t{1} << (31 - kBucketShift);  // probabilities have no sign

size_t bucket_of(float p) { return (std::bit_cast<uint32_t>(p) >> kBucketShift) & (kBuckets - 1); }

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

Sampler::Sampler(const SamplingConfig& config) : config_(config) {}

SampledToken Sampler::sample(std::span<const float> logits, double uniform) {
  const bool greedy = config_.temperature == 0;
  const float inverse_temperature = greedy ? 1.0f : static_cast<float>(1.0 / config_.temperature);
  const auto n = static_cast<int64_t>(logits.size());
  const kernels::RowStats stats = kernels::stats_of_row(logits.data(), n, inverse_temperature);
  const double lse = kernels::lse_of(stats);
  SampledToken sampled;
  if (!std::isfinite(lse) || !std::isfinite(stats.total)) return sampled;

  double kept_mass = 1;
  if (greedy) {
    sampled.token = static_cast<int32_t>(std::find(logits.begin(), logits.end(), stats.max) - logits.begin());
  } else {
    probability_.resize(logits.size());
    probabilities(logits, inverse_temperature, lse, probability_.data());
    sampled.token = config_.truncates() ? sample_truncated(uniform, kept_mass) : sample_from_all(uniform);
  }
  sampled.logit = logits[sampled.token];
  const kernels::TokenStats token = kernels::token_stats(stats, sampled.logit, inverse_temperature, n);
  sampled.logprob = sampled.whole_logprob = token.logprob;
  if (kept_mass < 1) sampled.logprob = static_cast<float>(token.logprob - std::log(kept_mass));
  sampled.entropy = token.entropy;
  sampled.confidence = token.confidence;
  return sampled;
}

int32_t Sampler::sample_from_all(double uniform) {
  const float* p = probability_.data();
  const auto n = static_cast<int64_t>(probability_.size());
  const int64_t blocks = n / kBlock;
  block_.resize(blocks);
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += block_[b] = block_sum(p + b * kBlock);
  double target = uniform * (total + sum(p + blocks * kBlock, n - blocks * kBlock));
  for (int64_t b = 0; b < blocks; ++b) {
    const double mass = block_[b];
    const bool last = b + 1 == blocks && blocks * kBlock == n;
    if (target < mass || last) return static_cast<int32_t>(b * kBlock + search(p + b * kBlock, kBlock, target));
    target -= mass;
  }
  return static_cast<int32_t>(blocks * kBlock + search(p + blocks * kBlock, n - blocks * kBlock, target));
}

// Sorts the row into buckets by probability (exponent and three bits of the mantissa), so that a cut sorts only the
// bucket it falls into: those above are kept whole.
void Sampler::fill_buckets() {
  bucket_.assign(kBuckets, {});
  for (float p : probability_) {
    Bucket& bucket = bucket_[bucket_of(p)];
    bucket.mass += p;
    ++bucket.count;
  }
}

// candidates_ = the ids of higher buckets in order of id, then those of bucket `last` from the most probable on, equal
// ones by id. Returns the number of the former.
size_t Sampler::gather(size_t last) {
  candidates_.clear();
  boundary_.clear();
  const float low = std::bit_cast<float>(static_cast<uint32_t>(last) << kBucketShift);
  for (size_t v = 0; v < probability_.size(); ++v) {
    if (probability_[v] < low) continue;
    const bool above = bucket_of(probability_[v]) > last;
    (above ? candidates_ : boundary_).push_back({probability_[v], static_cast<int32_t>(v)});
  }
  std::sort(boundary_.begin(), boundary_.end(), more_probable);
  const size_t above = candidates_.size();
  candidates_.insert(candidates_.end(), boundary_.begin(), boundary_.end());
  return above;
}

void Sampler::keep_top_k(int64_t k) {
  size_t last = kBuckets - 1;
  for (int64_t count = bucket_[last].count; count < k; count += bucket_[last].count) --last;
  gather(last);
  candidates_.resize(k);
}

// The shortest prefix, by probability, of a row of mass `total` that holds top_p of it; one id at least.
void Sampler::keep_top_p(double total) {
  const double wanted = config_.top_p * total;
  size_t last = kBuckets - 1;
  double above = 0;
  while (last > 0 && above + bucket_[last].mass < wanted) above += bucket_[last--].mass;
  size_t count = gather(last);
  while (count < candidates_.size() && (count == 0 || above < wanted)) above += candidates_[count++].probability;
  candidates_.resize(count);
}

// The shortest prefix of candidates_, by probability, that holds top_p of their mass.
void Sampler::keep_top_p_of_candidates() {
  double left = 0;
  for (const Candidate& c : candidates_) left += c.probability;
  std::sort(candidates_.begin(), candidates_.end(), more_probable);
  size_t count = 0;
  for (double mass = 0; count < candidates_.size() && (count == 0 || mass < config_.top_p * left); ++count) {
    mass += candidates_[count].probability;
  }
  candidates_.resize(count);
}

// Of candidates_, or of the whole row where there are none, those with p >= min_p max p: the most probable one is left.
void Sampler::keep_min_p() {
  const double least = config_.min_p * *std::max_element(probability_.begin(), probability_.end());
  if (!candidates_.empty()) {
    std::erase_if(candidates_, [&](const Candidate& c) { return c.probability < least; });
    return;
  }
  for (size_t v = 0; v < probability_.size(); ++v) {
    if (probability_[v] >= least) candidates_.push_back({probability_[v], static_cast<int32_t>(v)});
  }
}

int32_t Sampler::sample_truncated(double uniform, double& kept_mass) {
  const auto n = static_cast<int64_t>(probability_.size());
  fill_buckets();
  double total = 0, kept = 0;
  for (const Bucket& bucket : bucket_) total += bucket.mass;
  candidates_.clear();
  if (config_.top_k > 0 && config_.top_k < n) {
    keep_top_k(config_.top_k);
    if (config_.top_p < 1) keep_top_p_of_candidates();
  } else if (config_.top_p < 1) {
    keep_top_p(total);
  } else if (config_.min_p == 0) {
    return sample_from_all(uniform);
  }
  if (config_.min_p > 0) keep_min_p();
  for (const Candidate& c : candidates_) kept += c.probability;
  kept_mass = static_cast<int64_t>(candidates_.size()) == n ? 1 : std::min(1.0, kept / total);
  const double target = uniform * kept;
  double running = 0;
  for (const Candidate& c : candidates_) {
    running += c.probability;
    if (running > target) return c.id;
  }
  return std::max_element(candidates_.begin(), candidates_.end(),
                          [](const Candidate& a, const Candidate& b) { return a.probability < b.probability; })
      ->id;
}

}  // namespace ucas
