#include "train/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ucas {

namespace {

// Share of lr after the warm-up: min + (1 - min) (1 + cos(pi progress)) / 2.
double after_warmup(const OptimizerConfig& config, int64_t step, int64_t total) {
  if (config.schedule == Schedule::constant) return 1;
  auto length = static_cast<double>(std::max<int64_t>(1, total - config.warmup_steps));
  double progress = std::clamp(static_cast<double>(step - config.warmup_steps) / length, 0.0, 1.0);
  return config.min_lr_ratio + (1 - config.min_lr_ratio) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

double rollout_lr(const OptimizerConfig& config, int64_t finished_steps, int64_t total_steps) {
  if (finished_steps < config.warmup_steps) {
    const int64_t step = finished_steps + (config.warmup_from_zero ? 0 : 1);
    return config.lr * static_cast<double>(step) / static_cast<double>(config.warmup_steps);
  }
  return config.lr * after_warmup(config, finished_steps, total_steps);
}

double update_lr(const OptimizerConfig& config, int64_t update, int64_t total_updates) {
  if (update < config.warmup_steps) {
    return config.lr * static_cast<double>(update + 1) / static_cast<double>(config.warmup_steps);
  }
  return config.lr * after_warmup(config, update, total_updates);
}

}  // namespace ucas
