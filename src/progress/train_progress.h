// How a training, by rewards or by demonstrations, shows itself on standard error (--progress): a few lines that
// rewrite themselves in place on a terminal, else plain lines. TrainView is what is shown, as text for any width, so
// that it can be tested without a terminal: how far it is, its latest numbers, one response, and the signs that the
// report finds in the same numbers (report/signs.h). Fed by the trainer through core/observer. Threads: a TrainView
// belongs to one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal/terminal.h"
#include "core/observer.h"
#include "records/run/steps.h"
#include "report/signs.h"

namespace ucas {

enum class ProgressMode { automatic, plain, dashboard, none };
// "" is automatic. Throws Error(ErrorKind::usage) naming the choices.
ProgressMode parse_progress_mode(const std::string& word);
// `automatic` is the dashboard on a terminal, else plain lines.
std::unique_ptr<TrainObserver> make_train_observer(ProgressMode mode);

class TrainView {
 public:
  std::string detail;  // what the trainer is at
  bool ended = false;

  // Seconds of any clock, as everywhere here. A run that goes on has its earlier steps behind it.
  void begin(const TrainStart& start, double now);
  void add(int64_t step, StepRow metrics, const TrainSample* sample, double now);

  // Steps, or prompts where these decide how long the run is.
  int64_t done() const { return done_; }
  int64_t total() const { return by_prompts() ? start_.total_prompts : start_.total_steps; }
  const char* unit() const { return by_prompts() ? "prompts" : start_.supervised ? "updates" : "steps"; }
  std::string numbers() const;  // "  reward 0.812  acc 0.640 ...", each as last known
  // Signs that stand and matter.
  const std::vector<FoundSign>& alarms() const { return alarms_; }
  void list_alarms() const;  // as messages: each with what it usually means and what to do

  // The first line stands on top. At most size.rows - 1 lines, each of less than size.columns cells.
  std::vector<InkedLine> lines(TerminalSize size, bool utf8, double now) const;

 private:
  bool by_prompts() const { return start_.total_prompts > 0; }  // then the number of steps is unknown
  InkedLine progress(size_t width, bool utf8, double now) const;
  InkedLine curves(size_t width, bool utf8) const;
  InkedLine alarm() const;
  InkedLine sample(size_t width, bool utf8) const;

  TrainStart start_;
  StepTable steps_;
  std::vector<FoundSign> alarms_;
  int64_t step_ = 0, done_ = 0;
  double began_ = 0;
  std::vector<std::pair<double, int64_t>> finished_;  // when the latest steps ended, and what was done then
  TrainSample sample_;
};

}  // namespace ucas
