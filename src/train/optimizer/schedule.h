// Learning rates. Pure functions of a counter, so there is nothing to save.
#pragma once

#include <cstdint>

#include "core/model_options.h"

namespace ucas {

// RL, as verl does it: s = rollout steps *finished*, the same rate for all updates of a step. With a warm-up of W > 0
// steps the whole first step therefore runs at rate 0, unless warmup_from_zero is false: then at lr / W. Cosine runs
// from W to total_steps.
double rollout_lr(const OptimizerConfig& config, int64_t finished_steps, int64_t total_steps);

// SFT: per update, warm-up lr (u + 1) / W, then the schedule from W to total_updates; u counts from 0.
double update_lr(const OptimizerConfig& config, int64_t update, int64_t total_updates);

}  // namespace ucas
