// One step off-policy (rollout.off_policy_steps = 1): the responses of step k + 1 are sampled with the weights that
// step k starts from, during its update. They are saved with its checkpoint, because those weights no longer
// exist on resume; so a resumed run has the bits of an uninterrupted one. Servers sample in a thread during the update.
// Owned by the trainer; borrows a collector.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>

#include "train/collect/collect.h"

namespace ucas {

class PrefetchedStep {
 public:
  struct Step {
    Collected made;
    DataCursor cursor;  // after it
  };

  // Collects step `step` from where `cursor` stands, in a thread, until take() or wait().
  void begin(const Collector& collector, int64_t step, const DataCursor& cursor);
  void wait();  // until it is sampled; rethrows errors of sampling
  bool has(int64_t step) const { return step_ == step && (made_ || running_.valid() || !kept_.empty()); }
  // The responses of that step. After restore() they are graded again, the same.
  Step take(const Collector& collector, const DataCursor& cursor);

  std::string kept() const { return made_ ? sampled_ : ""; }  // for the checkpoint, once sampled
  void restore(std::string kept, int64_t step);               // of a checkpoint; "" is nothing

 private:
  struct Recorded {
    Step step;
    std::string bytes;
  };
  static Recorded collect(const Collector& from, int64_t step, DataCursor cursor);

  int64_t step_ = -1;
  std::future<Recorded> running_;
  std::optional<Step> made_;
  std::string sampled_;  // of made_
  std::string kept_;     // of a checkpoint
};

}  // namespace ucas
