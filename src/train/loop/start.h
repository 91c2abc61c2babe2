// Everything a run is made of, and how one starts or resumes.
// Owned by the caller; train/loop/trainer borrows it and moves its state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "model/limits.h"
#include "records/run/run_directory.h"
#include "rollout/policy.h"
#include "rollout/served_rollout.h"
#include "sharding/ranks.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/collect/collect.h"
#include "train/loop/python_advantage.h"
#include "train/loop/run_plan.h"
#include "train/optimizer/optimizer.h"
#include "train/state/train_state.h"

namespace ucas {

struct Training {
  TrainConfig config;
  std::shared_ptr<Ranks> ranks;
  RunDirectory run = {};
  Policy policy;
  std::unique_ptr<Rollouter> engine;   // samples here, where `rollout` does more than that
  ServedRollout* served = nullptr;     // the one of these two that asks servers, where there are rollout.servers
  std::unique_ptr<Rollouter> rollout;  // samples on all ranks, or with an environment
  Graders graders;
  std::unique_ptr<LineChild> external;           // of rank 0, where reward.command or reward.python is given
  std::unique_ptr<PythonAdvantages> advantages;  // where method.python is given
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::unique_ptr<AuxiliaryModel>> auxiliary_models;
  TrainingSet data;
  TrainingSet validation;
  std::vector<int32_t> stop_ids;
  std::vector<std::string> stop_texts;
  TrainState state = {};  // with the fingerprint of this run
  RunPlan plan = {};
  Limits limits = {};  // of the machine, for the policy
};

// Loads a fresh run into `out`. Nothing is written before everything was checked, and nothing loaded before its memory
// was planned: Error(ErrorKind::limit) where it cannot fit, unless `allow_over_plan`. `command` is what was typed.
Training open_training(TrainConfig config, const std::string& out, const std::string& command,
                       bool allow_over_plan = false, std::shared_ptr<Ranks> ranks = alone());
// Resumes the run in `run`. `overrides` may change only what does not change results (train.max_hours, threads, ...);
// "allow-changes" resumes if something else has changed or is missing, warns and records it in env.json;
// "allow-over-plan" is open_training's.
Training resume_training(const std::string& run, const std::vector<Setting>& overrides,
                         std::shared_ptr<Ranks> ranks = alone());

// What is about to happen, before it does, as messages. `total_steps` is the most there can be.
void announce(const Training& training, int64_t total_steps);

}  // namespace ucas
