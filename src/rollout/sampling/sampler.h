// Samples one token from one row of logits, with its statistics.
// Order of operations: temperature, top-k, top-p (over what top-k left), min-p (over what is left then), one
// inverse-CDF sample from one uniform.
// Log-prob, entropy and confidence come from kernels::token_stats, the trainer's own expressions: with no truncation
// the log-prob is bit-equal to Head::stats. Entropy and confidence are of softmax(logits / temperature) before
// truncation; the log-prob is of the distribution sampled from, so after a cut to mass q it is z_y - LSE - ln q;
// whole_logprob is z_y - LSE itself.
// Greedy (temperature 0) takes the lowest id among the largest logits and reports its numbers at temperature 1.
// Threads: one per Sampler (it owns scratch memory); any number of Samplers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rollout/sampling/config.h"

namespace ucas {

struct SampledToken {
  int32_t token = -1;
  float logprob = 0, whole_logprob = 0, entropy = 0, confidence = 0, logit = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplingConfig& config);
  // `uniform` in [0, 1). Logits that are not all finite give token -1: the caller knows which response that was.
  SampledToken sample(std::span<const float> logits, double uniform);

 private:
  struct Candidate {
    float probability;
    int32_t id;
  };
  struct Bucket {
    double mass = 0;
    int64_t count = 0;
  };
  static bool more_probable(const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  }
  int32_t sample_from_all(double uniform);
  int32_t sample_truncated(double uniform, double& kept_mass);
  void fill_buckets();
  size_t gather(size_t last);
  void keep_top_k(int64_t k);
  void keep_top_p(double total);
  void keep_top_p_of_candidates();
  void keep_min_p();

  SamplingConfig config_;
  std::vector<float> probability_;  // [V], up to a common factor
  std::vector<double> block_;       // [V / kBlock] their sums
  std::vector<Bucket> bucket_;
  std::vector<Candidate> candidates_, boundary_;
};

}  // namespace ucas
