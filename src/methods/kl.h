// Estimators of KL(pi || pi_ref) from one sampled token, d = lp - lp_ref, with the derivative to use as a loss
// (Eq. 1's last term is k3). k1 has expected gradient 0: it is for rewards, not for losses. k3_plus has the value of k3
// and the gradient of k2, which is unbiased on-policy.
#pragma once

#include "methods/method.h"

namespace ucas {

struct KlTerm {
  double value = 0;
  double d_logprob = 0;
};
KlTerm kl_term(KlEstimator estimator, double logprob, double ref_logprob);

}  // namespace ucas
