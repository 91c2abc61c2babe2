#include "methods/kl.h"

#include <algorithm>
#include <cmath>

namespace ucas {

namespace {

// exp(-d) + d - 1 with -d held in +-20 and the value in +-10, as in verl.
KlTerm k3(double d) {
  bool inside = std::fabs(d) <= 20;
  double minus_d = std::clamp(-d, -20.0, 20.0);
  double value = std::exp(minus_d) - minus_d - 1;
  if (value > 10) return {10, 0};
  return {value, inside ? 1 - std::exp(minus_d) : 0};
}

}  // namespace

KlTerm kl_term(KlEstimator estimator, double logprob, double ref_logprob) {
  double d = logprob - ref_logprob;
  if (std::isnan(d)) return {d, d};  // comparisons would make its derivative a number
  switch (estimator) {
    case KlEstimator::k1:
      return {d, 1};
    case KlEstimator::abs:
      return {std::fabs(d), static_cast<double>((d > 0) - (d < 0))};
    case KlEstimator::k2:
      return {d * d / 2, d};
    case KlEstimator::k3:
      return k3(d);
    case KlEstimator::k3_plus:
      return {k3(d).value, d};
  }
  return {};
}

}  // namespace ucas
