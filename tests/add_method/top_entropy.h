// A signal that the program does not have: the entropy of a row's likeliest tokens among themselves,
//   H = -sum_k q_k ln q_k, q_k = p_k / sum_j p_j,   dH / d ln p_k = -q_k (ln q_k + H).
#pragma once

#include <cmath>
#include <vector>

#include "core/signal.h"

namespace ucas {

inline double top_entropy_of(std::span<const LikelyToken> tokens, std::span<double> q) {
  double sum = 0, H = 0;
  for (const LikelyToken& token : tokens) sum += std::exp(token.z - tokens[0].z);
  for (size_t k = 0; k < tokens.size(); ++k) {
    q[k] = std::exp(tokens[k].z - tokens[0].z) / sum;
    if (q[k] > 0) H -= q[k] * std::log(q[k]);
  }
  return H;
}

inline TokenSignal top_entropy(int64_t count) {
  return {.key = "top_entropy",
          .words = "the entropy of the likeliest tokens",
          .reads = {.count = count},
          .compute =
              [](const LogitRow& row) {
                std::vector<double> q(row.likely.size());
                return top_entropy_of(row.likely, q);
              },
          .derivatives =
              [](const LogitRow& row, std::span<double> d) {
                const double H = top_entropy_of(row.likely, d);
                for (double& q : d) q = q > 0 ? -q * (std::log(q) + H) : 0;
              }};
}

}  // namespace ucas
