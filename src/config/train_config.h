// Options of `ucas train`. One TOML file per run; every key can be given on
// the command line (--method.beta 0.02). Names follow verl where it has one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "methods/method.h"
#include "objective/filter/dynamic_sampling.h"
#include "rollout/config.h"
#include "train/auxiliary/config.h"
#include "train/collect/config.h"
#include "train/loop/config.h"
#include "train/update/config.h"

namespace ucas {

struct TrainConfig {
  std::string label;  // name in reports; "" = the method's title
  std::string model;  // HF checkpoint directory
  std::string device = "cpu";
  Dtype dtype = Dtype::automatic;  // decided once all settings are known
  int64_t threads = 0;             // 0 = all cores
  int64_t seed = 0;
  TrainDataConfig data;
  TrainRolloutConfig rollout;
  LoraConfig lora;
  RewardConfig reward;
  ReferenceConfig reference;
  std::string method_name = "grpo";
  std::string method_preset;       // one of the method's presets
  std::string method_python;       // FILE.py:FUNCTION that gives the advantages; "" = the method's own
  std::shared_ptr<Method> method;  // made from method_name, holds the method's own options
  ObjectiveConfig objective;
  UpdateConfig update;
  OptimizerConfig optimizer;
  RunConfig train;

  void fields(Fields& f);
  // Cross-field checks, before anything is loaded. Messages name both values and the remedy.
  void validate() const;
  void validate_settings() const;                // the same but for model and data, which `ucas explain` can do without
  std::string title() const;                     // label, or the method's title
  Needs needs() const;                           // the method's, and what the objective and the reward add
  KeepRule keep_rule() const;                    // which prompts of a step are trained on
  ModelOptions model_options() const;            // of the policy
  ModelOptions auxiliary_model_options() const;  // of an auxiliary model: as the policy computes, all weights trained
  bool uses_passes() const { return train.steps == 0; }  // how long the run is: train.epochs, or train.steps
  // Generation batches of a step where every prompt passes; dynamic sampling may take more of them.
  int64_t fewest_gen_batches() const;
  bool prompts_are_known() const;  // it does not: each step takes as many prompts
  bool steps_are_known() const;    // the number of steps is known before the run
  int64_t gen_batch() const { return data.gen_batch_size > 0 ? data.gen_batch_size : data.train_batch_size; }
};

// What the option called `key` can change, of any run; `result` for options of methods, and for those that a run of
// another version has and this one does not know.
Effect effect_of(const std::string& key);

// The method named in `settings`, under the preset named there, brings its objective defaults; then all settings apply
// in order, strictly.
TrainConfig make_train_config(const std::vector<Setting>& settings);

}  // namespace ucas
