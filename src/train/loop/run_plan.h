// What a run takes of the machine, decided once, before anything is loaded, and passed on: memory, the responses
// decoded at once, the optimizer's device, and what ranks shard of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "config/plan/plan.h"
#include "config/train_config.h"
#include "records/run/run_directory.h"
#include "rollout/sampling/config.h"
#include "sharding/ranks.h"

namespace ucas {

struct RunPlan {
  at::Device device = at::kCPU;
  PlannedModels models;
  int64_t memory = 0;  // bytes at the peak
  std::string words;   // the same for people
  // On a GPU the number of responses decoded at once decides which GEMMs run, and so the bits. It comes from the
  // config, the model and the device's whole memory, never from what is free at this moment: a resumed run decodes as
  // the run before.
  EngineConfig slots;
  Shard shard = Shard::moments;
  bool offload = false;  // masters and moments are on the host. `auto` is a matter of GPUs
};

// `resumed`: the run that is resumed; null: a fresh one at `out`. Error(ErrorKind::limit) where memory or disk cannot
// do, unless `allow_over_plan`.
RunPlan plan_run(const TrainConfig& config, const std::string& out, const RunDirectory* resumed, bool allow_over_plan,
                 const Ranks& ranks);

// The error where a GPU has no memory left: `text`, LibTorch's, the phase, and the nearest setting that takes a
// tenth less than was planned.
std::string out_of_memory_words(const RunPlan& plan, const TrainConfig& config, const std::string& text);

}  // namespace ucas
