// How far the distribution pi of a next token has moved from the distribution mu, as a trust region asks
// (methods/loss/dppo.cpp):
//   TV = 1/2 sum_v |pi(v) - mu(v)|        KL = sum_v mu(v) ln(mu(v) / pi(v))
// of whole vocabularies thrown together into a few cells, which never makes either larger: a lower bound of both.
#pragma once

#include <cstdint>
#include <span>

namespace ucas {

enum class Divergence { tv, kl };

// Two cells: a token of these log-probs under mu and pi, and any other. A NaN passes through.
double token_divergence(Divergence kind, double mu, double pi);

// A cell for each of some tokens, by their log-probs under mu and pi, and one for all others. What is left for those is
// at least 1e-12, as in the authors' code: of all tokens together the sums are 1 but for rounding.
double cell_divergence(Divergence kind, std::span<const float> mu, std::span<const float> pi);

// What a loss reads as LossInput::divergence: that of the `tokens` likeliest ones of the policy before the step's first
// update, and all others.
struct LikelyDivergence {
  Divergence kind = Divergence::tv;
  int64_t tokens = 0;
};

}  // namespace ucas
