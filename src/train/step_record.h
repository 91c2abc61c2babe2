// What a step of training leaves behind: its row of steps.jsonl with the seconds of each stage, some of its responses
// and, of every N-th step, all that methods read (docs/formats.md); and what whoever watches is told. The loop in
// train/trainer says what happens in a step, this keeps what is known of it. Lives as long as its step; a step that is
// abandoned is never written and leaves no trace.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/log.h"
#include "core/observer.h"
#include "methods/apply.h"
#include "train/collect.h"
#include "train/companion.h"
#include "train/gradients.h"
#include "train/metrics.h"
#include "train/start.h"

namespace ucas {

// Steps of this run() whose responses could not be written.
struct UnstoredSteps {
  int64_t total = 0, in_a_row = 0;
};

class StepRecord {
 public:
  // The seconds of its life are the metric timing_s/NAME.
  class Clock {
   public:
    Clock(StepMetrics& metrics, const char* name) : metrics_(metrics), name_(name), began_(now_seconds()) {}
    ~Clock() { metrics_.set(std::string("timing_s/") + name_, now_seconds() - began_); }
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;

   private:
    StepMetrics& metrics_;
    const char* name_;
    double began_;
  };

  StepRecord(Training& training, const StepContext& context, TrainObserver& observer);

  const StepContext context;
  StepMetrics metrics;
  TokenUpdates updates;  // [N] each of a step that is kept whole, else empty

  // `phase` is what the observer is told that the trainer is at now.
  [[nodiscard]] Clock time(const char* name, const char* phase = nullptr);
  bool keeps_tokens() const;  // all that methods read of this step is stored

  void collected(const Collected& made);
  void shaped(const Batch& batch, const Shaped& shaped);
  void updated(std::span<const LossMetrics> losses, double grad_norm, double lr);  // the norm a mean over them
  // These files serve the report: one that cannot be written is no reason to lose the run, unless it goes on so.
  void store(const Collected& made, const Shaped& shaped, UnstoredSteps& unstored) const;
  // The row and the observer; with what the step took, unless it is the validation before the first one.
  void write();

 private:
  void passes();  // how far the run is in its problems

  Training& t_;
  TrainObserver& observer_;
  double began_;
  std::optional<TrainSample> sample_;
};

}  // namespace ucas
