// The critic's network and its gradient: the body of a language model with a scalar head on the final hidden states.
// V_t is read where the distribution of token t is: at the hidden state one position earlier, so V_t knows the prompt
// and the tokens before t, not t itself. train/auxiliary/critic.cpp makes an AuxiliaryModel of it.
// The value loss and its derivative are plain arithmetic in objective/loss/value_loss; autograd is used for the network
// alone. Legend: N tokens of the batch, n tokens of a micro-batch, D width.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/batch.h"
#include "model/model.h"
#include "objective/loss/value_loss.h"
#include "sharding/gradient_schedule.h"
#include "train/optimizer/optimizer.h"
#include "train/signals/logprobs.h"

namespace ucas {

struct ValueNetwork {
  std::unique_ptr<Model> body;
  at::Tensor head;  // [D], f32 parameter

  // Body without an LM head of its own (V does not use it: no gradient, nothing to save), then the head.
  std::vector<NamedTensor> parameters();
  // V of each packed token, [n]; differentiable when gradients are on.
  at::Tensor values(const PackedResponses& packed);
};

// The head is sampled from N(0, 1 / (D + 1)^2), as OpenRLHF and Open-Reasoner-Zero do. Of several ranks each loads the
// masters that its optimizer will own.
ValueNetwork make_value_network(const std::string& directory, uint64_t seed, at::Device device,
                                const ModelOptions& options = {}, const Placement& placement = {});

// V of every token of the batch, [N], without gradients; of several ranks each computes some, and all have the same.
std::vector<float> batch_values(ValueNetwork& network, const Batch& batch, int64_t token_budget,
                                Ranks* ranks = nullptr);

// Adds d (token mean of the clipped value loss over `responses`) / d parameter to the gradients, whatever the token
// budget cuts them into. `returns` is [N]; the old values are batch.signal("value").
ValueLossMetrics accumulate_value_gradients(ValueNetwork& network, const Batch& batch, std::span<const float> returns,
                                            std::span<const int64_t> responses, double value_clip, int64_t token_budget,
                                            const Among& among = {});

// The step's non-empty responses in `updates` shares that differ by at most one, in an order sampled from (seed): every
// share sees many prompts. Shares that would be empty are left out.
std::vector<std::vector<int64_t>> critic_shares(const Batch& batch, int64_t updates, uint64_t seed);

}  // namespace ucas
