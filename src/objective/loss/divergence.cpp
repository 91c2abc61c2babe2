#include "objective/loss/divergence.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace ucas {

double token_divergence(Divergence kind, double mu, double pi) {
  if (kind == Divergence::tv) return std::fabs(std::exp(pi) - std::exp(mu));
  const double rest = -std::expm1(mu);  // 1 - exp(mu), without losing digits where it is small
  return std::exp(mu) * (mu - pi) + (rest <= 0 ? 0 : rest * (std::log(rest) - std::log(-std::expm1(pi))));
}

double cell_divergence(Divergence kind, std::span<const float> mu, std::span<const float> pi) {
  UCAS_CHECK(mu.size() == pi.size(), "both distributions must cover the same tokens");
  double sum = 0, mu_left = 1, pi_left = 1;
  for (size_t k = 0; k < mu.size(); ++k) {
    const double m = std::exp(static_cast<double>(mu[k])), p = std::exp(static_cast<double>(pi[k]));
    sum += kind == Divergence::tv ? std::fabs(p - m) : m > 0 ? m * (static_cast<double>(mu[k]) - pi[k]) : 0;
    mu_left -= m;
    pi_left -= p;
  }
  const auto at_least = [](double left) { return left < 1e-12 ? 1e-12 : left; };  // a NaN stays
  const double m = at_least(mu_left), p = at_least(pi_left);
  return kind == Divergence::tv ? (sum + std::fabs(p - m)) / 2 : sum + m * std::log(m / p);
}

}  // namespace ucas
