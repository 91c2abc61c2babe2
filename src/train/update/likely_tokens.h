// The likeliest tokens of the policy before the step's first update, at every place of a batch, and how far the policy
// has moved from that distribution since: for losses that are held to it (Needs::divergence). One more pass for the
// first, one more GEMM of the LM head for the second; no gradient runs through either. Legend: N tokens of the batch, K
// likeliest of each, R rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "model/model.h"
#include "objective/loss/divergence.h"
#include "sharding/ranks.h"

namespace ucas {

struct LikelyTokens {
  int64_t count = 0;           // K, at most the vocabulary
  std::vector<int32_t> id;     // [N, K] from the likeliest on; of equal ones the lower id first
  std::vector<float> logprob;  // [N, K] as Head::stats gives it for that token
};
// Each rank reads some of the responses, and all have those of all.
LikelyTokens likely_tokens(Model& model, const Batch& batch, int64_t count, double temperature, int64_t token_budget,
                           Ranks* ranks = nullptr);

// Of rows [R, D] of hidden states that stand for those places of the batch, by the head as it is now.
std::vector<float> divergence_since(const LikelyTokens& likely, Divergence kind, const Head& head,
                                    const at::Tensor& rows, std::span<const int64_t> place, double temperature);

// Batch::min_p_logprob of every token, [N]: its log-prob under the policy cut to the tokens of p >= min_p max p and
// renormalised. Each rank reads some of the responses, and all have those of all.
std::vector<float> min_p_logprobs(Model& model, const Batch& batch, double min_p, double temperature,
                                  int64_t token_budget, Ranks* ranks = nullptr);

}  // namespace ucas
