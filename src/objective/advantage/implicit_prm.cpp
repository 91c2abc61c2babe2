#include "objective/advantage/implicit_prm.h"

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

}  // namespace ucas
