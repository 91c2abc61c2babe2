// The RLVR loop (paper Sec. 2): collect, advantages, update, record; and what a run needs around it: validation,
// checkpoints, signals, resume.
// Owns the run's state between steps; borrows model, rollout, tokenizer and verifier from open_training().
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/run_directory.h"
#include "rollout/policy.h"
#include "train/collect.h"
#include "train/companion.h"
#include "train/config.h"
#include "train/metrics.h"
#include "train/objective.h"
#include "train/observer.h"
#include "train/optimizer.h"
#include "train/skipped_updates.h"

namespace ucas {

// What a checkpoint's state.json holds besides weights and moments.
struct TrainState {
  int64_t step = 0;  // finished rollout steps
  DataCursor cursor;
  SkippedUpdates skipped;                                           // of the policy
  int64_t empty_steps = 0;                                          // rollout steps that kept no group
  std::map<std::string, std::map<std::string, double>> companions;  // Companion::state() by name
  std::string json(const std::string& fingerprint) const;
  // Throws Error("config") naming what differs if `fingerprint` is not the one saved.
  static TrainState parse(const std::string& json, const std::string& fingerprint, const std::string& where);
};

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
  std::string fingerprint;  // of data, tokenizer, initial weights and result-changing options, a line each
  TrainState state;
};

// Loads a fresh run into `out`, or goes on with the one in `out`. Nothing is written before everything was checked.
Training open_training(TrainConfig config, const std::string& out);
// `overrides` may change only what does not change results (train.steps, train.max_hours, threads, ...).
Training resume_training(const std::string& run, const std::vector<Setting>& overrides);

class Trainer {
 public:
  explicit Trainer(Training& training);
  // Runs to the end, or until told to stop. Returns kDone or kInterrupted (saved, resumable).
  int run(TrainObserver& observer);

 private:
  enum class Outcome { trained, empty, stopped };
  Outcome step();
  StepContext context() const;
  void update(const Batch& batch, std::span<const float> advantage, TokenUpdates* record, StepMetrics& m);
  void validate(StepMetrics& m);
  void save();
  void finish_row(StepMetrics& m, double began, const TrainSample* sample);
  void validate_first();
  void store_responses(const Collected& collected, std::span<const float> advantage, const Trace& trace,
                       const TokenUpdates& updates) const;
  void announce() const;
  bool stores_signals() const;  // of this step
  bool should_stop() const;

  Training& t_;
  Collector collector_;
  int64_t total_steps_ = 0;
  int64_t saved_step_ = -1;
  double began_ = 0;
  TrainObserver* observer_ = nullptr;  // while run() runs
};

// SIGTERM, SIGINT and SIGUSR1 ask for a save and exit 75; a second one ends the program at once.
void install_stop_signals();
bool stop_requested();

}  // namespace ucas
