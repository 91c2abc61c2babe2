// How a training, by rewards or by demonstrations, shows itself on standard error (--progress): plain lines. TrainView
// is what is known of it, so that it can be tested without lines: how far it is, its latest numbers, and the signs that
// the report finds in the same numbers (report/signs.h). Fed by the trainer through core/observer. Threads: a TrainView
// belongs to one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/observer.h"
#include "records/run/steps.h"
#include "report/signs.h"

namespace ucas {

enum class ProgressMode { plain, none };
// "" is plain. Throws Error(ErrorKind::usage) naming the choices.
ProgressMode parse_progress_mode(const std::string& word);
std::unique_ptr<TrainObserver> make_train_observer(ProgressMode mode);

class TrainView {
 public:
  // A resumed run has its earlier steps behind it.
  void begin(const TrainStart& start);
  void add(int64_t step, StepRow metrics);

  // Steps, or prompts where these decide how long the run is.
  int64_t done() const { return done_; }
  int64_t total() const { return by_prompts() ? start_.total_prompts : start_.total_steps; }
  const char* unit() const { return by_prompts() ? "prompts" : start_.supervised ? "updates" : "steps"; }
  std::string numbers() const;  // "  reward 0.812  acc 0.640 ...", each as last known
  // Active signs that matter.
  const std::vector<FoundSign>& alarms() const { return alarms_; }
  void list_alarms() const;  // as messages: each with what it usually means and what to do

 private:
  bool by_prompts() const { return start_.total_prompts > 0; }  // then the number of steps is unknown

  TrainStart start_;
  StepTable steps_;
  std::vector<FoundSign> alarms_;
  int64_t step_ = 0, done_ = 0;
};

}  // namespace ucas
