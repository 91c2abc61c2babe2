// One step of lag (rollout.lag = 1): the responses of step k + 1 are drawn by the weights that step k begins with,
// before or while these are updated. What was drawn is kept with its checkpoint, so that a run that goes on has the
// bits of one that was not stopped: they are drawn by weights that are gone by then. Where servers sample, a thread of
// its own waits for them while this one updates; else one follows the other, and only the lag remains, to be measured.
// Owned by the trainer; borrows its collector. Threads: one caller.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>

#include "train/collect.h"

namespace ucas {

class Ahead {
 public:
  struct Step {
    Collected made;
    DataCursor cursor;  // after it
  };

  // Collects step `step` from where `cursor` stands; `meanwhile`: in a thread, until take() or wait().
  void draw(const Collector& collector, int64_t step, const DataCursor& cursor, bool meanwhile);
  void wait();  // until it is drawn; errors of the drawing end here
  bool has(int64_t step) const { return step_ == step && (made_ || running_.valid() || !kept_.empty()); }
  // What was drawn for that step. After restore() it is graded again, the same.
  Step take(const Collector& collector, const DataCursor& cursor);

  std::string kept() const { return made_ ? drawn_ : ""; }  // for the checkpoint, once drawn
  void restore(std::string kept, int64_t step);             // of a checkpoint; "" is nothing

 private:
  struct Drawn {
    Step step;
    std::string bytes;
  };
  static Drawn collect(const Collector& from, int64_t step, DataCursor cursor);

  int64_t step_ = -1;
  std::future<Drawn> running_;
  std::optional<Step> made_;
  std::string drawn_;  // of made_
  std::string kept_;   // of a checkpoint
};

}  // namespace ucas
