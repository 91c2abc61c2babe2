#include "support/implicit_prm_loss.h"

namespace ucas::testing {

PrmLoss implicit_prm_loss(const Batch& batch, double beta) {
  PrmLoss total;
  double n = 0;
  for (const Response& o : batch.responses) {
    double sum = 0;
    for (float q : Batch::tokens(batch.signal("prm_logratio"), o)) sum += q;
    PrmRow row = o.length > 0 ? implicit_prm_row(sum, is_right(o), beta) : PrmRow{};
    total.loss += row.loss;
    total.accuracy += row.agrees ? 1 : 0;
    total.d_token.push_back(row.d_token);
    n += o.length > 0 ? 1 : 0;
  }
  if (n == 0) return total;
  total.loss /= n;
  total.accuracy /= n;
  for (double& d : total.d_token) d /= n;
  return total;
}

}  // namespace ucas::testing
