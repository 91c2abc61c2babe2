// The token explorer: single tokens of saved steps (records/run/step_data.h) with every quantity recorded of them.
// Everything shown was recorded in the run directory; only logarithms are turned into probabilities. explorer.js draws
// it.
#pragma once

#include <string>
#include <vector>

#include "compare/groups.h"
#include "records/run/step_data.h"

namespace ucas {

// What is known about the tokens of one saved step: each row a quantity with its symbol, its meaning, and its equation
// in the UCAS article. Feeds report/page/explorer.

struct TokenQuantity {
  std::string symbol, title, equation;
  enum class Kind { signal, trace, advantage, update } kind = Kind::signal;
  bool per_token = true;      // values are [N] if so, else [B]
  std::vector<float> values;  // NaN: not a finite number
  std::vector<float> mean;    // [B] over the response, of advantages; else empty
};

std::vector<TokenQuantity> token_quantities(const StepData& data);

struct ExplorerPage {
  std::string json;  // what explorer.js reads
  std::string html;  // what it fills, and what was left out; "" where no run has saved steps
};
// Of each run at most a few saved steps, spread over the training; of each step at most a few prompts, and at most
// about `budget` bytes of JSON in all. Throws Error if a step's file is broken.
ExplorerPage explorer_page(const std::vector<RunGroup>& groups, size_t budget);

}  // namespace ucas
