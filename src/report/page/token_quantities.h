// What is known about the tokens of one saved step: each row a quantity with its symbol, its meaning, and its equation
// in the UCAS article. Feeds report/page/explorer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "records/run/step_data.h"
#include "records/run/step_methods.h"

namespace ucas {

struct TokenQuantity {
  std::string symbol, title, equation;
  enum class Kind { signal, trace, advantage, update, method } kind = Kind::signal;
  bool per_token = true;      // values are [N] if so, else [B]
  std::vector<float> values;  // NaN: not a finite number
  std::vector<float> mean;    // [B] over the response, of advantages; else empty
};

std::vector<TokenQuantity> token_quantities(const StepData& data, std::span<const MethodAdvantages> methods);

}  // namespace ucas
