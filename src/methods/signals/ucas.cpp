// UCAS, Algorithm 1 of the paper, equation by equation: Eq. 3's advantage is first weighted by how confident the
// response is among its group (stage 1, Eq. 6-8), then lowered for each token by how certain the token's raw logit is
// within its response (stage 2, Eq. 9-10). All signals are the old policy's; kernels/lm_head.h computes both of Eq. 5:
//   C_it = logsumexp(z) - mean_v z, z = logits / temperature      l_it = the raw logit of the sampled token
// The loss is DAPO's (Eq. 11), with dynamic sampling: its mean is over the tokens of a prompt, then over prompts.
#include "methods/signals/ucas.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/str.h"
#include "methods/registry.h"

namespace ucas {

Ucas::Ucas() {
  objective_ = {
      .clip_high = 0.28, .dual_clip = 10.0, .aggregation = Aggregation::group_token_mean, .keep_mixed_groups = true};
}

void Ucas::fields(Fields& f) {
  f.field("alpha", alpha_, Range{0, 10}, "strength of response-level modulation (Eq. 8); 0 = off");
  f.field("beta", beta_, Range{0, 10}, "token certainty penalty (Eq. 10); 0 = off");
  group_.fields(f);
}

// A_i = (R_i - mean(R)) / (std(R) + eps)
std::vector<double> Ucas::advantage_of(std::span<const Response> o) const { return group_advantage(o, group_); }

// C(o_i|q) = mean_t C_it
std::vector<double> Ucas::confidence_of(const Batch& batch, std::span<const Response> o) const {
  std::vector<double> C;
  for (const Response& o_i : o) C.push_back(mean(Batch::tokens(batch.confidence, o_i)));
  return C;
}

// C_hat_i = (C_i - mean(C)) / (std(C) + eps). Empty responses have no confidence and stay out.
std::vector<double> Ucas::standardized(std::span<const double> C, std::span<const Response> o) const {
  return zscore(C, non_empty(o), group_.eps, group_.ddof);
}

// W = exp(-alpha C_hat) if A > 0: a confident right answer counts less; exp(alpha C_hat) if A < 0: a confident wrong
// one is punished more.
double Ucas::weight_of(double A, double C_hat, const Response& /*o_i*/) const {
  if (A == 0) return 1;
  return std::exp(std::clamp(A > 0 ? -alpha_ * C_hat : alpha_ * C_hat, -20.0, 20.0));
}

// l_hat_it = (l_it - min l_i) / (max l_i - min l_i + eps), over the response; 0 where all are equal
std::vector<double> Ucas::scaled_certainty(const Batch& batch) const {
  std::vector<double> l_hat;
  for (const Response& o_i : batch.responses) {
    std::vector<double> of_i = min_max(Batch::tokens(batch.logit, o_i), group_.eps, EqualValues::zero);
    l_hat.insert(l_hat.end(), of_i.begin(), of_i.end());
  }
  return l_hat;
}

// A_it = max(0, A_mod - beta l_hat) if A >= 0, A_mod - beta l_hat otherwise: certain tokens are pushed down, those of a
// right answer never below 0.
double Ucas::token_advantage(double /*A*/, double A_mod, double l_hat, const Response& /*o_i*/) const {
  const double shaped = A_mod - beta_ * l_hat;
  return A_mod < 0 ? shaped : not_below_zero(shaped);
}

void Ucas::algorithm_1(const Batch& batch, std::span<float> A_final, UcasSteps& steps) const {
  steps.response.resize(batch.responses.size());
  steps.l_hat = scaled_certainty(batch);  // Eq. 9
  for (const Group& group : batch.groups) {
    auto o = batch.of(group);                               // o_1 .. o_G
    const std::vector<double> A = advantage_of(o);          // Eq. 3
    const std::vector<double> C = confidence_of(batch, o);  // Eq. 6
    const std::vector<double> C_hat = standardized(C, o);   // Eq. 7
    for (size_t i = 0; i < o.size(); ++i) {
      const double W = weight_of(A[i], C_hat[i], o[i]);  // Eq. 8
      const double A_mod = W * A[i];
      for (int64_t t = o[i].first; t < o[i].first + o[i].length; ++t) {
        A_final[t] = static_cast<float>(token_advantage(A[i], A_mod, steps.l_hat[t], o[i]));  // Eq. 10
      }
      steps.response[group.first + i] = {A[i], C[i], C_hat[i], W, A_mod};
    }
  }
}

void Ucas::advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const {
  UcasSteps steps;
  algorithm_1(batch, advantage, steps);
  record_ucas_metrics(batch, advantage, steps, recording);
}

std::vector<Equation> Ucas::equations() const {
  const double eps = group_.eps;
  return {
      group_advantage_equation(group_, "Eq. 3"),
      {"Eq. 6", "C_i = mean_t C_it, C_it = KL(U || p_it) + ln V", "a response's confidence"},
      {"Eq. 7", str("C_hat = (C_i - mean(C)) / (std(C) + ", eps, ")"),
       "against that of the other responses to the prompt"},
      {"Eq. 8", str("A_mod = W A, W = exp(-", alpha_, " C_hat) if A > 0, exp(", alpha_, " C_hat) if A < 0, 1 if A = 0"),
       "stage 1: a confident right answer counts less, a confident wrong one is punished more"},
      {"Eq. 9",
       str("l_hat = (l_it - min l) / (max l - min l + ", eps, ") over the response, l_it = the raw logit of o_it"),
       "how certain a token is; where all are equal: 0"},
      {"Eq. 10", str("A_it = max(0, A_mod - ", beta_, " l_hat) if A >= 0, A_mod - ", beta_, " l_hat otherwise"),
       "stage 2: certain tokens are pushed down; a right answer's never below 0"}};
}

MethodRow ucas_row() {
  return {
      .title = "UCAS",
      .paper =
          "Xie et al. 2025, Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning "
          "(arXiv:2510.10649)",
      .presets = {"paper", "released", "logprob"},
      .create = make_ucas,
      .metrics = ucas_metrics()};
}

}  // namespace ucas
