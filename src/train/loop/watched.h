// Passes a training on to its observer, and tells the watchdog (base/process/activity) which phase of which step it is
// in. Threads: one caller, and the watchdog's own.
#pragma once

#include <string>

#include "base/process/activity.h"
#include "base/str.h"
#include "core/observer.h"
#include "train/loop/config.h"

namespace ucas {

class WatchedTraining final : public TrainObserver {
 public:
  WatchedTraining(TrainObserver& observer, const RunConfig& config) : observer_(observer), dog_(config.watchdog) {}
  void begin(const TrainStart& start) override {
    step_ = start.step;
    observer_.begin(start);
  }
  void phase(const std::string& what, const std::string& detail) override {
    set_phase(str("step ", step_ + 1, ", ", what));
    observer_.phase(what, detail);
  }
  void step(int64_t step, StepRow metrics, const TrainSample* sample) override {
    step_ = step;
    progressed();
    observer_.step(step, metrics, sample);
  }
  void end() override { observer_.end(); }

 private:
  TrainObserver& observer_;
  int64_t step_ = 0;
  Watchdog dog_;
};

}  // namespace ucas
