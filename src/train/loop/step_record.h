// What a step of training leaves behind: its row of steps.jsonl with the seconds of each stage, some of its responses
// and, of every N-th step, all that methods read (docs/formats.md); and what observers get. The loop in
// train/loop/trainer says what happens in a step, this keeps what is known of it. Lives as long as its step; a step
// that is abandoned is never written and leaves no trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/terminal/log.h"
#include "core/observer.h"
#include "methods/apply.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/collect/collect.h"
#include "train/loop/start.h"
#include "train/metrics/metrics.h"
#include "train/update/gradients.h"

namespace ucas {

// Steps of this run() whose responses could not be written.
struct UnstoredSteps {
  int64_t in_a_row = 0;
};

class StepRecord {
 public:
  // Where the policy computes: what it did, held against the machine's limits. Only sampling is bound by memory.
  struct MachineShare {
    const Metric *operations, *bandwidth;  // null: unknown
  };
  // The seconds of its life are a metric, and what the policy did in them others.
  class Clock {
   public:
    Clock(StepRecord& record, const Metric& seconds, const MachineShare& share)
        : record_(record), seconds_(seconds), share_(share), work_(record.work()), began_(now_seconds()) {}
    ~Clock() {
      const double seconds = now_seconds() - began_;
      record_.metrics.set(seconds_, seconds);
      record_.set_shares(share_, work_, seconds);
    }
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;

   private:
    StepRecord& record_;
    const Metric& seconds_;
    const MachineShare share_;
    const Work work_;
    double began_;
  };

  StepRecord(Training& training, const StepContext& context, TrainObserver& observer);

  const StepContext context;
  StepMetrics metrics;
  TokenUpdates updates;  // [N] each of a step that is kept whole, else empty

  // `phase`: the trainer's phase for the observer.
  [[nodiscard]] Clock time(const Metric& seconds, const char* phase = nullptr, const MachineShare& share = {});
  bool keeps_tokens() const;  // all that methods read of this step is stored

  void collected(const Collected& made);
  void computed(const Batch& batch, const Advantages& computed);
  // `objective` as it was of this step; the norm is a mean over the updates.
  void updated(std::span<const LossMetrics> losses, const ObjectiveConfig& objective, double grad_norm, double lr);
  // These files serve the report: one that cannot be written is no reason to lose the run, unless it happens again and
  // again.
  void store(const Collected& made, const Advantages& computed, UnstoredSteps& unstored) const;
  // The row and the observer; with what the step took, unless it is the validation before the first one.
  void write();

 private:
  Work work() const;  // of the policy so far
  void set_shares(const MachineShare& share, const Work& before, double seconds);
  void passes();  // how far the run is in its problems

  Training& t_;
  TrainObserver& observer_;
  const Work work_;
  const int64_t moved_;  // bytes between ranks before this step
  double began_;
};

// Messages of a training step: unparseable answers, and the share of the machine's peak that it used.

// Once, for the first step: a run whose answers are unparseable learns nothing, or an unwanted format.
void warn_of_unreadable(const Training& training, const CollectStats& stats);
// "sampling 39 %, update 48 %"; "" where nothing is known.
std::string share_words(const StepMetrics& metrics);

}  // namespace ucas
