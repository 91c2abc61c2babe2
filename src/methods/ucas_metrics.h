// What UCAS computes on its way, kept for the report, and what shaping did to the step, in numbers.
#pragma once

#include <span>
#include <vector>

#include "methods/method.h"

namespace ucas {

struct UcasSteps {
  explicit UcasSteps(const Batch& batch)
      : A(batch.responses.size()),
        C(A.size()),
        C_hat(A.size()),
        W(A.size(), 1.0f),
        A_mod(A.size()),
        l_hat(batch.token.size()) {}
  void record(size_t row, double A_i, double C_i, double C_hat_i, double W_i, double A_mod_i) {
    A[row] = static_cast<float>(A_i);
    C[row] = static_cast<float>(C_i);
    C_hat[row] = static_cast<float>(C_hat_i);
    W[row] = static_cast<float>(W_i);
    A_mod[row] = static_cast<float>(A_mod_i);
  }
  std::vector<float> A, C, C_hat, W, A_mod;  // [B]
  std::vector<float> l_hat;                  // [N]
};

// Metrics "ucas/..." (docs/metrics.md) of the final advantages A_final, [N], and the steps themselves as trace rows.
void record_ucas(const Batch& batch, std::span<const float> A_final, UcasSteps steps, Trace& trace);

}  // namespace ucas
