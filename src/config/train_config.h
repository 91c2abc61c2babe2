// Options of `ucas train`. One TOML file per run; every key can be given on
// the command line (--method.beta 0.02). Names follow verl where it has one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/refusals.h"
#include "core/model_options.h"
#include "core/optimizer_config.h"
#include "data/problems.h"
#include "data/templates.h"
#include "methods/method.h"
#include "objective/dynamic_sampling.h"
#include "sampling/rollout.h"
#include "verify/extract_option.h"
#include "verify/graders.h"

namespace ucas {

// Which problems come next: all of them in a new order each epoch, or those that are neither solved nor hopeless.
enum class DataOrder { shuffled, difficulty };
constexpr std::array<const char*, 2> names(DataOrder) { return {"shuffled", "difficulty"}; }

struct TrainDataConfig {
  std::vector<std::string> files;
  std::string prompt_template = "auto";  // config/prompt_choice.h
  FewShot examples;
  int64_t max_prompt_length = 1024;
  int64_t train_batch_size = 128;    // prompts trained on per step
  int64_t gen_batch_size = 0;        // prompts generated at a time; 0 = train_batch_size
  int64_t max_num_gen_batches = 10;  // of dynamic sampling, per step; 0 = no limit
  bool train_short = true;           // out of generation batches: train on the fewer prompts there are, or stop
  bool shuffle = true;
  DataOrder order = DataOrder::shuffled;
  std::vector<std::string>
      weights;                  // "SOURCE=WEIGHT": shares of the prompts that are sampled; none: as the files have them
  int64_t solved_cooldown = 0;  // steps for which a problem rests after all its responses were right; 0 = it does not
  bool skip_bad_rows = false;
  ProblemColumns columns;
  std::vector<std::string> val_files;
  int64_t val_limit = 0;  // first N problems; 0 = all
  void fields(Fields& f);
};

// Whose figures of the sampled tokens are the old policy's: the sampler's, which on the CPU are the trainer's bit for
// bit, or those of a pass of the trainer over all of them.
enum class OldPolicy { sampler, trainer };
constexpr std::array<const char*, 2> names(OldPolicy) { return {"sampler", "trainer"}; }
// Of the sampler's, the trainer computes every so many-th response, too.
inline constexpr int64_t kCheckedOf = 16;

// What becomes of prompts that passed the rule of collection beyond what their step trains on.
// Who samples: this program, or servers of another one (train/served_rollout.h).
enum class SampledBy { native, sglang, vllm };
constexpr std::array<const char*, 3> names(SampledBy) { return {"native", "sglang", "vllm"}; }

struct TrainRolloutConfig {
  int64_t n = 16;  // G: responses per prompt
  double temperature = 1.0;
  double top_p = 1.0;
  int64_t top_k = 0;
  double min_p = 0;
  int64_t response_length = 1024;  // limit, end token included
  int64_t max_slots = 0;           // responses decoded at once; 0 = chosen
  OldPolicy old_log_prob = OldPolicy::sampler;
  std::vector<std::string> stop;  // texts that end a response, beside stop tokens
  bool carry_over = false;        // of prompts that passed beyond those that a step needs
  int64_t off_policy_steps = 0;   // 1: sampled by the weights that the step before began with
  SampledBy backend = SampledBy::native;
  std::vector<std::string> servers;     // their addresses
  std::string served_model;             // its name there; "" = the only one
  int64_t requests = 32;                // in flight
  int64_t retries = 10;                 // of one request
  double request_timeout = 600;         // seconds of one try
  double patience = 300;                // seconds without any response
  double weight_sync_tolerance = 0.05;  // mean |theirs - ours| of log-probs of a known text
  void fields(Fields& f);
  SamplingConfig sampling() const { return {temperature, top_p, top_k, min_p, response_length}; }
};

enum class KlControl { fixed, adaptive };
constexpr std::array<const char*, 2> names(KlControl) { return {"fixed", "adaptive"}; }

struct RewardConfig {
  double correct = 1, wrong = 0;
  bool partial = false;  // what lies between, by Verdict::score
  GraderKind grader = GraderKind::math;
  std::vector<std::string> graders;  // "SOURCE=GRADER": of these data sources
  double tolerance = 1e-4;           // of the numeric one
  std::vector<std::string> weights;  // "PART=WEIGHT" (objective/reward_terms.h); none: the answer, or the command
  std::string format;                // pattern of the whole response
  std::string command;               // gives the score instead of the verdict (train/reward_command.h); "": none
  double command_seconds = 600;
  ExtractOption extract = ExtractOption::automatic;  // config/prompt_choice.h
  Truncated truncated = Truncated::grade;
  int64_t overlong_buffer = 0;  // DAPO overlong shaping (docs/paper.md); 0 = off
  double overlong_factor = 1;
  double kl_coeff = 0;  // KL in the reward (objective/kl.h); 0 = off. The first one where it is adaptive
  KlEstimator kl_estimator = KlEstimator::k1;
  KlControl kl_control = KlControl::fixed;
  KlSchedule kl_schedule;
  double kl_target = 0.1;
  double kl_horizon = 10000;  // in responses
  code::CodeOptions code;
  void fields(Fields& f);
  void validate() const;
  GraderSetup setup() const { return {said(extract).value_or(Extract::strict), code, tolerance}; }
};

// The reference that KL terms are held to: the policy's start, or what it is moved to on the way.
struct ReferenceConfig {
  int64_t sync_steps = 0;  // 0 = never
  double mixup_alpha = 1;  // of the policy's weights; 1 = a reset
  bool moves() const { return sync_steps > 0; }
  void fields(Fields& f);
};

// How gradients of several ranks become one: by a sum, or one rank after the other, in the order of one process.
enum class Reduce : uint8_t { sum, ordered };

struct UpdateConfig {
  int64_t mini_batch_size = 32;       // prompts per optimizer update
  int64_t epochs = 1;                 // passes over each step's batch
  int64_t micro_batch_tokens = 4096;  // token budget of one forward and backward pass
  Recompute recompute = Recompute::none;
  Reduce reduce = Reduce::sum;
  Shard shard = Shard::moments;
  void fields(Fields& f);
};

struct RunConfig {
  int64_t steps = 0;  // 0 = by epochs
  int64_t epochs = 1;
  int64_t save_freq = 0;  // 0 = at the end only
  int64_t keep = 2;
  int64_t test_freq = 0;  // validation every n steps; 0 = off
  bool val_before_train = true;
  int64_t val_n = 0;             // sampled responses to each validation problem, beside the greedy one
  double val_temperature = 1.0;  // of these
  std::string best_metric;       // a metric of validation; the checkpoint where it is highest is kept, too; "" = none
  int64_t patience = 0;          // validations without a better one that end the run; 0 = any number
  std::vector<std::string> stop_when;  // bounds on a step's numbers that end the run (config/stop_bound.h)
  int64_t stored_prompts = 2;          // prompts per step whose responses are kept for the report
  int64_t stored_responses = 4;        // responses kept of each
  int64_t stored_signals = 20;  // signals of every N-th step, and of the first, are kept (records/step_data.h); 0 = off
  int64_t stored_signal_tokens = 65536;  // most tokens of such a file; 0 = the whole batch
  bool tensorboard = false;
  double max_hours = 0;                     // 0 = no limit
  double watchdog = 300, watchdog_end = 0;  // seconds without progress (base/activity.h); 0 = off
  void fields(Fields& f);
};

struct TrainConfig {
  std::string label;  // name in reports; "" = the method's title
  std::string model;  // HF checkpoint directory
  std::string device = "cpu";
  Dtype dtype = Dtype::f32;
  int64_t threads = 0;  // 0 = all cores
  int64_t seed = 0;
  TrainDataConfig data;
  TrainRolloutConfig rollout;
  LoraConfig lora;
  RewardConfig reward;
  ReferenceConfig reference;
  std::string method_name = "grpo";
  std::string method_preset;       // one of the method's presets
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
  ModelOptions auxiliary_model_options() const;  // of a model beside it: as the policy computes, all weights trained
  bool uses_passes() const { return train.steps == 0; }  // how long the run is: train.epochs, or train.steps
  // Generation batches of a step where every prompt passes; dynamic sampling may take more of them.
  int64_t fewest_gen_batches() const;
  bool prompts_are_known() const;  // it does not: each step takes as many prompts
  bool steps_are_known() const;    // the number of steps is known before the run
  int64_t gen_batch() const { return data.gen_batch_size > 0 ? data.gen_batch_size : data.train_batch_size; }

 private:
  void validate_combination() const;
  void validate_carry_over() const;
  void refuse_off_policy(Refusals& refuse) const;
};

// What the option called `key` can change, of any run; `result` for options of methods, and for those that a run of
// another version has and this one does not know.
Effect effect_of(const std::string& key);

// The method named in `settings`, under the preset named there, brings its objective defaults; then all settings apply
// in order, strictly.
TrainConfig make_train_config(const std::vector<Setting>& settings);
// A TOML file: a path, or the name of an embedded one ("dapo-tiny").
std::vector<Setting> read_config_file(const std::string& path_or_name);

}  // namespace ucas
