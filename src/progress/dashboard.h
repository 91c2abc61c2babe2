// The calm view of a training on a terminal: a block of about a dozen lines that rewrites itself in place, with
// messages above it. DashboardState is what is shown, as text for any width, so that it can be tested without a
// terminal; Dashboard draws it: at most four times a second, and once a second while nothing happens, from a thread of
// its own. Alarms are the signs that the report finds in the same numbers (report/signs.h). Fed by the trainer through
// core/observer. Threads: a DashboardState belongs to one lock.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/terminal/log.h"
#include "base/terminal/terminal.h"
#include "core/metrics.h"
#include "core/observer.h"
#include "progress/run_history.h"

namespace ucas {

class DashboardState {
 public:
  void begin(const TrainStart& start, double now);  // seconds of any clock, as everywhere here
  void add(int64_t step, StepRow metrics, const TrainSample* sample, double now);
  const RunHistory& history() const { return history_; }
  std::string phase, detail;  // what the trainer is at
  bool ended = false;

  // The first line stands on top. At most size.rows - 1 lines, each of less than size.columns cells.
  std::vector<InkedLine> lines(TerminalSize size, bool utf8, double now) const;

 private:
  struct Row {
    const char *key, *title;
  };
  static Row of(const Metric& metric) { return {metric.key, metric.label}; }
  InkedLine head(size_t width, bool utf8) const;
  InkedLine progress(size_t width, bool utf8, double now) const;
  std::vector<InkedLine> curves(size_t width, bool utf8) const;
  InkedLine chart(const Row& row, size_t width, bool utf8) const;
  InkedLine seconds(size_t width) const;
  InkedLine alarm() const;
  std::vector<InkedLine> sample_lines(size_t width, bool utf8) const;
  double pace() const;  // seconds a step, of late
  const char* unit() const { return start_.supervised ? "update" : "step"; }
  double share_done() const;  // of the run: its steps, or its prompts
  double steps_left() const;  // about so many

  TrainStart start_;
  RunHistory history_;
  int64_t step_ = 0;
  double prompts_ = 0;  // generated so far
  double began_ = 0;
  std::vector<double> finished_;  // when the latest steps ended, the beginning first
  TrainSample sample_, newest_;   // shown while the run goes on; shown when it has ended
  double sampled_ = 0;            // when sample_ was taken
  bool has_sample_ = false;
};

class Dashboard final : public TrainObserver {
 public:
  Dashboard();
  ~Dashboard() override;  // leaves the block as it was last, drawn once more
  void begin(const TrainStart& start) override;
  void phase(const std::string& what, const std::string& detail) override;
  void step(int64_t step, StepRow metrics, const TrainSample* sample) override;
  void end() override;

 private:
  void watch();         // the thread's work
  void draw(bool now);  // with lock held
  void close(bool finished);

  std::mutex mutex_;
  std::condition_variable wake_;
  DashboardState state_;
  LiveBlock block_;
  bool utf8_, dirty_ = false, open_ = false;
  double drawn_ = 0;
  LogSink before_;
  std::thread thread_;
};

}  // namespace ucas
