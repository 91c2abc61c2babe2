// What diagnosis.h reads, from what is stored: the samples of an evaluation, or a saved step of a training.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compare/diagnosis.h"
#include "records/evaluation.h"
#include "records/run/step_data.h"

namespace ucas {

// The first `words` words of a text, one space between.
std::string opening_of(const std::string& text, int64_t words);

// One group a problem, of its stored samples; problems with fewer than two are left out. Log-probs are of the
// distribution drawn from, as the evaluation has them.
std::vector<SignalledGroup> signalled_groups(std::span<const ProblemRow> rows, int64_t words);

// The groups of a step, which must hold the text of its tokens.
std::vector<SignalledGroup> signalled_groups(const StepData& data, int64_t words);

}  // namespace ucas
