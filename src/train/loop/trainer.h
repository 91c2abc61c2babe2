// The RLVR loop (paper Sec. 2): collect, advantages, update; and what a run needs around it: validation, checkpoints,
// signals, resume. Borrows the run's parts from train/loop/start and moves its state from step to step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "core/observer.h"
#include "sharding/agreement.h"
#include "train/loop/start.h"
#include "train/loop/step_record.h"
#include "train/state/checkpoint.h"

namespace ucas {

class Trainer {
 public:
  explicit Trainer(Training& training);
  // Runs to the end, or until interrupted. Returns kDone or kInterrupted (saved, resumable).
  int run(TrainObserver& observer);

 private:
  enum class Outcome { done, stopped, out_of_prompts };
  Outcome step(StepRecord& record);
  Outcome recorded_step();
  Outcome saved_step();
  [[noreturn]] void save_failed_step(const Error& failure);
  void hand_over(StepRecord& record);
  Collected collect(StepRecord& record);
  void update(const Batch& batch, std::span<const float> advantage, StepRecord& record);
  Decision decide(const char* what, Decision mine);
  void save(bool needed);  // the last one, or one before it stops
  void say_end() const;
  bool finished() const;  // the run is as long as the config asks
  bool should_stop() const;

  Training& t_;
  Rewards rewards_;
  Collector collector_;
  int64_t total_steps_ = 0;  // at most, where dynamic sampling decides how many the passes give
  int64_t saved_at_ = -1;
  int64_t synced_ = -1;  // the step whose weights the servers have
  UnstoredSteps unstored_;
  FailedSaves failed_saves_;
  std::string shares_;  // of the last step, in words
  double began_ = 0;
  TrainObserver* observer_ = nullptr;  // while run() runs
};

}  // namespace ucas
