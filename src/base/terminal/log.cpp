#include "base/terminal/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/terminal.h"

namespace ucas {

namespace {

std::mutex& mutex() {
  static std::mutex m;
  return m;
}

bool progress_line_open = false;  // guarded by mutex(): a progress line is on the terminal without its newline

int out_error = 0;  // guarded by mutex(): errno of the first failed write to standard output

void to_stderr(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n <= 0) return;  // a closed terminal must not stop a run
    done += static_cast<size_t>(n);
  }
}

void default_sink(LogLevel level, const std::string& message) {
  std::string line = progress_line_open ? "\r\033[K" : "";
  progress_line_open = false;
  to_stderr(str(line, level != LogLevel::info ? "warning: " : "", message, "\n"));
}

LogSink& sink() {
  static LogSink current = default_sink;
  return current;
}

// Whatever a message quotes (a file's name, a problem's id) cannot command a terminal.
std::string without_controls(const std::string& message) {
  std::vector<std::string> lines = split(message, '\n');
  for (std::string& line : lines) line = printable(line, std::string::npos);
  return join(lines, "\n");
}

void print_at(LogLevel level, const std::string& message) {
  std::string safe = without_controls(message);
  std::lock_guard lock(mutex());
  sink()(level, safe);
}

constexpr struct {
  const char *one, *many;
} kWarningWords[] = {
#define UCAS_ROW(name, one, many) {one, many},
    UCAS_WARNINGS(UCAS_ROW)
#undef UCAS_ROW
};

std::array<std::atomic<int64_t>, std::size(kWarningWords)> counts{};

}  // namespace

void log(const std::string& message) { print_at(LogLevel::info, message); }
void warn(const std::string& message) { print_at(LogLevel::warning, message); }
void warn_here(const std::string& message) { print_at(LogLevel::own, message); }

LogSink set_log_sink(LogSink next) {
  std::lock_guard lock(mutex());
  LogSink before = sink();
  sink() = next ? std::move(next) : default_sink;
  return before;
}

bool out(const std::string& text) {
  std::lock_guard lock(mutex());
  size_t done = 0;
  while (done < text.size() && out_error == 0) {
    ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {  // a non-blocking pipe
      pollfd ready{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      out_error = errno;
    }
  }
  return out_error == 0;
}

void finish_output() {
  std::lock_guard lock(mutex());
  // Some file systems report only at the close that there was no room.
  int copy = out_error == 0 ? ::dup(STDOUT_FILENO) : -1;
  if (copy >= 0 && ::close(copy) != 0) out_error = errno;
  if (out_error == 0 || out_error == EPIPE) return;
  throw Error(
      ErrorKind::io,
      str("standard output: cannot write: ", std::strerror(out_error), "; what was to be printed is lost or cut short"),
      kIoFailure);
}

bool stderr_is_terminal() {
  static const bool yes = [] {
    auto set = [](const char* name) {
      const char* value = std::getenv(name);
      return value == nullptr ? std::string() : std::string(value);
    };
    std::string ci = set("CI");
    return ::isatty(STDERR_FILENO) == 1 && std::getenv("NO_TTY") == nullptr && set("TERM") != "" &&
           set("TERM") != "dumb" && (ci.empty() || ci == "false" || ci == "0");
  }();
  return yes;
}

// UCAS_CLOCK_RATE, for tests: so many times as quick a clock, so that what is said after five seconds is said after no
// time or never.
double now_seconds() {
  static const double rate = [] {
    const char* set = std::getenv("UCAS_CLOCK_RATE");
    return set == nullptr ? 1.0 : std::strtod(set, nullptr);
  }();
  return rate * std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(std::string what, int64_t total, std::string unit, int64_t already)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      already_(already),
      done_(already),
      began_(now_seconds()) {}

Progress::~Progress() { finish(); }

void Progress::update(int64_t done, const std::string& note) {
  done_ = done;
  double now = now_seconds();
  double pause = stderr_is_terminal() ? 0.1 : 5.0;
  if (now - std::max(printed_, stderr_is_terminal() ? 0.0 : began_) < pause) return;
  printed_ = now;
  print(false, note);
}

void Progress::finish(const std::string& note) {
  if (finished_) return;
  finished_ = true;
  print(true, note);
}

void Progress::print(bool last, const std::string& note) {
  double elapsed = now_seconds() - began_;
  double rate = elapsed > 0 ? static_cast<double>(done_ - already_) / elapsed : 0;
  std::string text = str(what_, "  ", grouped(done_), total_ > 0 ? "/" + grouped(total_) : "", " ", unit_, "  ");
  // Slow work by the time of one, so that no rate reads 0.00.
  if (rate >= 0.1) text += str(fixed(rate, rate < 10 ? 2 : 0), " ", unit_, "/s  ");
  if (rate > 0 && rate < 0.1) text += str(human_seconds(1 / rate), " each  ");
  if (last) {
    text += "took " + human_seconds(elapsed);
  } else if (rate <= 0 || total_ <= 0) {
    text += "for " + human_seconds(elapsed);
  } else {
    text += "ETA " + human_seconds(static_cast<double>(total_ - done_) / rate);
  }
  if (!note.empty()) text += "  " + note;
  text = without_controls(text);
  std::lock_guard lock(mutex());
  if (stderr_is_terminal()) {
    const size_t width = std::max<size_t>(terminal_width(STDERR_FILENO), 20);
    if (text.size() >= width) text.resize(width - 1);
    to_stderr(str("\r\033[K", text, last ? "\n" : ""));
    progress_line_open = !last;
  } else {
    sink()(LogLevel::info, text);
  }
}

void count_warning(Warning what, int64_t count) { counts[static_cast<size_t>(what)] += count; }

int64_t warnings_counted(Warning what) { return counts[static_cast<size_t>(what)]; }

std::string warnings_in_words() {
  std::vector<std::string> parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t n = counts[i];
    if (n > 0) parts.push_back(str(grouped(n), " ", n == 1 ? kWarningWords[i].one : kWarningWords[i].many));
  }
  return parts.empty() ? "" : kWarningsBegin + join(parts, ", ");
}

}  // namespace ucas
