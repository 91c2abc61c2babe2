// The RLVR loop (paper Sec. 2): collect, advantages, update, record; and what a run needs around it: validation,
// checkpoints, signals, resume.
// Owns the run's state between steps; borrows model, rollout, tokenizer and verifier from open_training().
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "config/train_config.h"
#include "core/observer.h"
#include "core/run_directory.h"
#include "rollout/policy.h"
#include "train/collect.h"
#include "train/companion.h"
#include "train/metrics.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/train_state.h"

namespace ucas {

// Everything a run is made of.
struct Training {
  TrainConfig config;
  RunDirectory run;
  Policy policy;
  std::unique_ptr<Rollout> rollout;
  std::unique_ptr<Verifier> verifier;
  std::unique_ptr<AdamW> optimizer;
  std::vector<std::unique_ptr<Companion>> companions;
  TrainingSet data;
  TrainingSet validation;
  std::vector<int32_t> stop_ids;
  TrainState state;  // with the fingerprint of this run
};

// Loads a fresh run into `out`. Nothing is written before everything was checked. `command` is what was typed.
Training open_training(TrainConfig config, const std::string& out, const std::string& command);
// Goes on with the run in `run`. `overrides` may change only what does not change results (train.max_hours, threads,
// ...), and "allow-changes" goes on where something else has changed or is missing, says so and keeps it in env.json.
Training resume_training(const std::string& run, const std::vector<Setting>& overrides);

class Trainer {
 public:
  explicit Trainer(Training& training);
  // Runs to the end, or until told to stop. Returns kDone or kInterrupted (saved, resumable).
  int run(TrainObserver& observer);

 private:
  enum class Outcome { trained, empty, stopped, out_of_prompts };
  Outcome step();
  StepContext context() const;
  int64_t problems() const { return static_cast<int64_t>(t_.data.problems.size()); }
  void update(const Batch& batch, std::span<const float> advantage, TokenUpdates* record, StepMetrics& m);
  void validate(StepMetrics& m);
  void record_passes(StepMetrics& m) const;
  void save();
  void finish_row(StepMetrics& m, double began, const TrainSample* sample);
  void validate_first();
  void store_responses(const Collected& collected, std::span<const float> advantage, const Recording& recording,
                       const TokenUpdates& updates);
  void announce() const;
  std::string length_in_words() const;  // of the run, in steps and in passes over the problems
  bool finished() const;                // the run is as long as the config asks
  bool stores_signals() const;          // of this step
  bool should_stop() const;

  Training& t_;
  Collector collector_;
  int64_t total_steps_ = 0;  // at most, where dynamic sampling decides how many the passes give
  int64_t saved_step_ = -1;
  int64_t unstored_ = 0, unstored_in_a_row_ = 0;  // steps whose responses could not be written
  double began_ = 0;
  TrainObserver* observer_ = nullptr;  // while run() runs
};

}  // namespace ucas
