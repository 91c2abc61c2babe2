// Trackers that follow a run (train.track): each is a child, python/ucas/track.py under the user's Python with the
// tracker's own package, that reads RUN/steps.jsonl as it grows. Nothing of it can stop or slow the run: one that ends
// is a warning, and what it lacks is sent later by `python -m ucas.track RUN --to NAME`. A thread of its own watches
// the children.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace ucas {

class Trackers {
 public:
  // Starts a child for each of `names`; their output goes to RUN/track-NAME.log.
  Trackers(const std::vector<std::string>& names, const std::string& run);
  // Tells them that the run is over, waits for `kLastWords` seconds, and leaves those that still send.
  ~Trackers();
  Trackers(const Trackers&) = delete;
  Trackers& operator=(const Trackers&) = delete;

 private:
  class Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace ucas
