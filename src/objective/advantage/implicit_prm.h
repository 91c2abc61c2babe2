// The implicit process reward model's loss, plain arithmetic: a language model phi is a classifier of whole responses,
// P(right) = sigma(beta sum_t q_it) with q_it = lp_phi - lp_ref, trained by cross-entropy on the verdicts. Its
// gradient reaches every token of a response equally. train/auxiliary/implicit_prm feeds it into the network.
#pragma once

#include <vector>

#include "core/batch.h"

namespace ucas {

// Of one response: BCE(sigma(beta s), acc) with s = sum_t q_it.
struct PrmRow {
  double loss = 0;
  double probability = 0;  // sigma(beta s)
  double d_token = 0;      // d loss / d lp_phi of each of its tokens: beta (sigma(beta s) - acc)
  bool agrees = false;     // (probability > 0.5) == acc
};
PrmRow implicit_prm_row(double logratio_sum, bool right, double beta);

// acc_i: the verdict alone, before any shaping of the reward.
bool is_right(const Response& response);

// Means over the responses that have tokens. Empty ones say nothing about phi.
struct PrmLoss {
  double loss = 0, accuracy = 0;
  std::vector<double> d_token;  // [B] d loss / d lp_phi of each token of a response
};

}  // namespace ucas
