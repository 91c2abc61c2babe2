// Two methods that are not shipped yet and change the loss itself, written against methods/method.h alone: they prove
// that token_loss reaches a whole sequence (GSPO) and a whole mini-batch with its own token weights (80/20).
#pragma once

#include <memory>
#include <vector>

#include "methods/method.h"

namespace ucas::testing {

// Group Sequence Policy Optimization: one ratio per response, s_i = exp(mean_t(lp - old)), clipped as a whole.
std::unique_ptr<Method> make_gspo();

// "Beyond the 80/20 rule": only the `share` of tokens with the highest entropy carries loss. `released` divides by the
// tokens selected (their weights), the other form (TRL) by all tokens.
std::unique_ptr<Method> make_forking_tokens(double share, bool released);

// Per-token losses as given, derivative 1: for the arithmetic of aggregation alone.
std::unique_ptr<Method> make_fixed_loss(std::vector<float> loss_by_token);

}  // namespace ucas::testing
