#include "methods/fisher.h"

#include <algorithm>
#include <cmath>

namespace ucas {

namespace {

// ln C(n, k) as a sum of logarithms: exact to a few ulp per factor, and symmetric in k and n - k.
double log_choose(int64_t n, int64_t k) {
  k = std::min(k, n - k);
  double sum = 0;
  for (int64_t i = 1; i <= k; ++i) sum += std::log(static_cast<double>(n - k + i) / static_cast<double>(i));
  return sum;
}

}  // namespace

double table_probability(const ContingencyTable& t) {
  return std::exp(log_choose(t.a + t.c, t.a) + log_choose(t.b + t.d, t.b) -
                  log_choose(t.a + t.b + t.c + t.d, t.a + t.b));
}

double fisher_two_sided(const ContingencyTable& t) {
  int64_t right = t.a + t.c, wrong = t.b + t.d, with = t.a + t.b;
  double observed = table_probability(t) * (1 + 1e-7), p = 0;
  for (int64_t k = std::max<int64_t>(0, with - wrong); k <= std::min(right, with); ++k) {
    double p_k = table_probability({k, with - k, right - k, wrong - (with - k)});
    if (p_k <= observed) p += p_k;
  }
  return std::min(p, 1.0);
}

}  // namespace ucas
