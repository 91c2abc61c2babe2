// Choosing among the tokens of a scope (micro-batch, mini-batch or step): shared by the methods that select. What is
// chosen must not depend on how sequences are packed, so tokens are taken in the order of their responses in the batch
// and means are summed over sorted values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/text/fields.h"
#include "objective/loss/loss.h"

namespace ucas {

// method.scope. The articles' releases choose inside each micro-batch, which makes the result depend on its size.
void scope_field(Fields& f, Scope& scope);
const char* scope_words(Scope scope);  // "mini-batch"

struct TokenAt {
  int64_t index = 0;  // in the arrays of the LossInput
  int64_t response = 0, position = 0;
};
// All tokens, by response, then position.
std::vector<TokenAt> valid_tokens(const LossInput& in);

// cov_t = (A_t - mean A)(lp_t - mean lp), one for each of `tokens`, means over them.
std::vector<double> covariances(const LossInput& in, std::span<const TokenAt> tokens);

// Which `k` of `tokens` have the largest score, as indices into the arrays of `in`. Of equal scores the token whose own
// numbers (lp, old lp, A, H) are larger goes first, and only tokens equal in all of them are ordered by their place
// in the batch: the order of rows decides nothing else. A NaN score counts as the largest, so that it is not hidden.
std::vector<int64_t> largest(const LossInput& in, std::span<const TokenAt> tokens, std::span<const double> score,
                             size_t k);

// The q-quantile with linear interpolation, as numpy and torch define it. NaN if any value is; x must not be empty.
double quantile(std::vector<double> x, double q);

}  // namespace ucas
