// Runs side by side: each in a process of its own (this program again), its output in RUN/log.txt, one line per running
// job on the terminal. Nothing is lost with a worker or with this process: a run goes on from its last checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

// Exit code of a worker whose run another process holds at the moment (or that was told to stop): try again later.
constexpr int kBusy = 75;

struct Job {
  std::string title;  // "UCAS, seed 0"
  std::string run;    // its directory: progress is read from its steps.jsonl
  Words words;        // what the program is called with
  int64_t steps = 0;  // of the whole run; 0: not counted, only its time is shown
};

struct FailedJob {
  std::string title, log;
  std::string reason;  // the last line of its log
};

struct JobsResult {
  bool stopped = false;           // told to stop; the workers saved and ended
  std::vector<FailedJob> failed;  // the others went on
};

// At most `parallel` at a time, in order. A worker that is killed is started again, three times at most. Ends when
// `should_stop` says so.
JobsResult run_jobs(const std::vector<Job>& jobs, int64_t parallel, const std::function<bool()>& should_stop);

// The last training step that RUN/steps.jsonl holds; 0 where there is none.
int64_t last_step(const std::string& run);
// In a worker: a SIGTERM when the process that started it is gone.
void end_with_parent();

}  // namespace ucas
