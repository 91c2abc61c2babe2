// A method on a batch: what the trainer's step, `ucas advantages` and tests ask for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "methods/method.h"

namespace ucas {

struct Advantages {
  std::vector<float> advantage;  // [N] A_it; 0 in masked responses, which learn nothing
  Recording recording;
};

// The first of these signals that the batch does not hold, for people; empty where nothing lacks.
std::string missing(std::span<const TokenSignal> signals, const Batch& batch);

// Throws Error(ErrorKind::unsupported) where something is missing.
Advantages compute_advantages(const Method& method, const Batch& batch);
// Under a preset ("" = the first) and with these of its options changed.
Advantages compute_advantages(const std::string& method, const Batch& batch, const std::string& preset = "",
                              const std::vector<Setting>& settings = {});

// The responses that are trained, and what a loss reads of them while the policy is still the one that sampled.
std::vector<Sequence> trained_sequences(const Batch& batch);
LossInput before_updates(const Batch& batch, std::span<const float> advantage, std::span<const Sequence> sequences);

// What a method asks of each token at the first update of a step, for comparing methods: minus the derivative of the
// token's loss by its log-prob where the policy is still the one that sampled. For a method that weighs tokens in its
// advantage this is the advantage; for one that weighs or selects them in its loss it is what becomes of it. How the
// losses of tokens are averaged is not in it.

// [N]; 0 in masked responses. `advantage`: [N], as the method gave it. A selection is made among the whole step's
// tokens.
std::vector<float> first_update(const Method& method, const Batch& batch, std::span<const float> advantage);

}  // namespace ucas
