// Messages to people. Library code never prints: it calls log(), which goes to a sink that the command line owns
// (standard error by default). Results of commands go to standard output through out().
// Threads: any; a message is written whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ucas {

enum class LogLevel { info, warning, own };  // own: a warning of this process alone, whatever the others meet
using LogSink = std::function<void(LogLevel, const std::string&)>;

void log(const std::string& message);        // one line, no trailing newline
void warn(const std::string& message);       // the same, marked "warning:"
void warn_here(const std::string& message);  // a warning of the machine that this rank runs on: each rank says its own
LogSink set_log_sink(LogSink sink);          // returns the one before

// To standard output, as it is. A failure does not end the active work (its files are worth having); later output is
// dropped, and finish_output() reports it. A reader that left the pipe (`| head`) is no failure. Returns false once
// nothing arrives any more: what only prints can stop.
bool out(const std::string& text);
void finish_output();  // the end of the program: Error(ErrorKind::io, exit 74) if something did not reach standard
                       // output

// A terminal on which lines may rewrite themselves: not a dumb one (TERM), not that of a build service (CI), and
// without NO_TTY.
bool stderr_is_terminal();

// Progress of long work: on a terminal one line that rewrites itself, otherwise a plain line every few seconds.
//   train  12/24 steps  2.1 step/s  ETA 6s  reward 0.81
class Progress {
 public:
  // `already` of `total` were done before, in no time that counts here.
  Progress(std::string what, int64_t total, std::string unit, int64_t already = 0);
  ~Progress();  // ends the line
  void update(int64_t done, const std::string& note = "");
  void finish(const std::string& note = "");

 private:
  void print(bool last, const std::string& note);
  std::string what_, unit_;
  int64_t total_, already_, done_;
  double began_, printed_ = 0;
  bool finished_ = false;
};

double now_seconds();  // monotonic

// Counts what a command skipped, retried or fell back on, so that its last line can say all of it (P12 of
// docs/reliability.md). The caller has already warned where it happened.

// Name, and what one and several of it are called.
// clang-format off
#define UCAS_WARNINGS(X) \
  X(bad_row, "bad row", "bad rows") \
  X(prompt, "prompt", "prompts") \
  X(short_prompt, "prompt with less room for its response", "prompts with less room for their responses") \
  X(demonstration, "demonstration", "demonstrations") \
  X(unencodable, "row with bytes that have no token", "rows with bytes that have no token") \
  X(over_budget, "answer over the grader's budget", "answers over the grader's budget") \
  X(sandbox, "failure of the sandbox", "failures of the sandbox") \
  X(request, "request to a server", "requests to a server") \
  X(update, "update of weights", "updates of weights") \
  X(empty_step, "step with nothing to learn from", "steps with nothing to learn from") \
  X(rescored_step, "step scored by the trainer", "steps scored by the trainer") \
  X(unstored_step, "step without stored responses", "steps without stored responses") \
  X(unsaved, "checkpoint not saved", "checkpoints not saved") \
  X(passed_over, "checkpoint passed over", "checkpoints passed over") \
  X(changed, "change that was allowed", "changes that were allowed") \
  X(moved_log, "log moved or cut while it was written", "logs moved or cut while they were written") \
  X(stall, "alarm of the watchdog", "alarms of the watchdog")
// clang-format on
enum class Warning {
#define UCAS_ENUMERATOR(name, one, many) name,
  UCAS_WARNINGS(UCAS_ENUMERATOR)
#undef UCAS_ENUMERATOR
};

void count_warning(Warning what, int64_t count = 1);
int64_t warnings_counted(Warning what);
inline constexpr const char* kWarningsBegin = "warnings in total: ";
// "warnings in total: 1 bad row, 2 updates of weights"; "" where nothing was counted.
std::string warnings_in_words();

}  // namespace ucas
