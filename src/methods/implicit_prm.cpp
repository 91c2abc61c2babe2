#include "methods/implicit_prm.h"

#include <algorithm>
#include <cmath>

namespace ucas {

PrmRow implicit_prm_row(double logratio_sum, bool right, double beta) {
  double x = beta * logratio_sum, acc = right ? 1 : 0;
  PrmRow row;
  // sigma(x) and ln(1 + e^x) through e^-|x|: nothing overflows, and a sure answer keeps its loss to the last digit.
  double e = std::exp(-std::fabs(x));
  row.probability = x >= 0 ? 1 / (1 + e) : e / (1 + e);
  row.loss = std::max(x, 0.0) + std::log1p(e) - acc * x;
  row.d_token = beta * (row.probability - acc);
  row.agrees = (row.probability > 0.5) == right;
  return row;
}

bool is_right(const Response& response) { return response.verdict.kind == VerdictKind::equal; }

PrmLoss implicit_prm_loss(const Batch& batch, double beta) {
  PrmLoss total;
  double n = 0;
  for (const Response& o : batch.responses) {
    double sum = 0;
    for (float q : Batch::tokens(batch.prm_logratio, o)) sum += q;
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

}  // namespace ucas
