// What a method asks of each token at the first update of a step, for comparing methods: minus the derivative of the
// token's loss by its log-prob where the policy is still the one that sampled. For a method that weighs tokens in its
// advantage this is the advantage; for one that weighs or selects them in its loss it is what becomes of it. How the
// losses of tokens are averaged is not in it.
#pragma once

#include <span>
#include <vector>

#include "core/batch.h"
#include "methods/method.h"

namespace ucas {

// [N]; 0 in masked responses. `advantage`: [N], as the method gave it. A selection is made among the whole step's
// tokens.
std::vector<float> first_update(const Method& method, const Batch& batch, std::span<const float> advantage);

}  // namespace ucas
