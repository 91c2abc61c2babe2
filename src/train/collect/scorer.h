// Rewards and advantages from outside of the program, as a run's config names them (reward.command, reward.python,
// method.python): seen to before anything is loaded, and started by rank 0. train/collect/reward_command.h asks.
#pragma once

#include <memory>

#include "base/process/line_child.h"
#include "config/train_config.h"

namespace ucas {

// Loads the Python functions that the config names, and sees that a reward's can be called with the data's columns, in
// a Python that ends.
void check_outside(const TrainConfig& config);

// The program that scores responses; null where the config names none.
std::unique_ptr<LineChild> start_scorer(const TrainConfig& config);

}  // namespace ucas
