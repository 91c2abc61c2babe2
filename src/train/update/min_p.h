// Log-probs of sampled tokens under min-p, for losses that are held to them (Needs::min_p). One more pass, through
// which no gradient runs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "model/model.h"
#include "sharding/ranks.h"

namespace ucas {

// Batch::min_p_logprob of every token, [N]: its log-prob under the policy cut to the tokens of p >= min_p max p and
// renormalised. Each rank reads some of the responses, and all have those of all.
std::vector<float> min_p_logprobs(Model& model, const Batch& batch, double min_p, double temperature,
                                  int64_t token_budget, Ranks* ranks = nullptr);

}  // namespace ucas
