#include "study/jobs.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/warning_counters.h"
#include "base/str.h"
#include "base/terminal/log.h"

extern char** environ;

namespace ucas {

namespace {

constexpr int kAttempts = 3;        // of a run whose worker was killed
constexpr double kBusyPause = 5;    // seconds until a run that another process holds is tried again
constexpr double kQuietLines = 30;  // seconds between the lines where there is no terminal
constexpr int kPollMilliseconds = 200;

std::string own_program() {
  char path[4096];
  ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) throw Error(ErrorKind::io, str("/proc/self/exe: ", std::strerror(errno)), kIoFailure);
  return std::string(path, static_cast<size_t>(n));
}

std::string log_file(const Job& job) { return path_join(job.run, "log.txt"); }

// In a process group of its own: Ctrl-C is for the parent, which asks its workers to save once.
pid_t start(const Job& job) {
  make_directories(job.run);
  std::string program = own_program(), log = log_file(job);
  std::vector<char*> argv = {program.data()};
  Words words = job.words;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW,
                                   0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  int error = ::posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw Error(ErrorKind::io, str("cannot start ", program, ": ", std::strerror(error)), kIoFailure);
  return pid;
}

std::string last_line(const std::string& path) {
  if (!exists(path)) return "no log";
  int64_t size = file_size(path), from = std::max<int64_t>(0, size - 4096);
  std::string text(static_cast<size_t>(size - from), '\0');
  read_at(path, from, text.data(), size - from);
  std::string_view rest = trim(text);
  return printable(rest.substr(rest.find_last_of("\n\r") + 1), 300);
}

struct Running {
  const Job* job = nullptr;
  pid_t pid = 0;
  double began = 0;
  int64_t first_step = 0;  // found there when it began
};

class ThreadPool {
 public:
  ThreadPool(const std::vector<Job>& jobs, int64_t parallel, const std::function<bool()>& should_stop)
      : parallel_(static_cast<size_t>(parallel)), total_(jobs.size()), should_stop_(should_stop) {
    for (const Job& job : jobs) waiting_.push_back({&job, 0, 0});
  }

  JobsResult run() {
    began_ = now_seconds();
    while (!waiting_.empty() || !running_.empty()) {
      if (should_stop_() && !result_.stopped) stop();
      while (!result_.stopped && running_.size() < parallel_ && begin_next()) {
      }
      reap();
      show(false);
      ::poll(nullptr, 0, kPollMilliseconds);
      if (result_.stopped && running_.empty()) break;
    }
    clear();
    return std::move(result_);
  }

 private:
  struct Waiting {
    const Job* job;
    int attempts;
    double not_before;
  };

  bool begin_next() {
    double now = now_seconds();
    auto next = std::ranges::find_if(waiting_, [&](const Waiting& w) { return w.not_before <= now; });
    if (next == waiting_.end()) return false;
    Waiting chosen = *next;
    waiting_.erase(next);
    Running running{chosen.job, start(*chosen.job), now, last_step(chosen.job->run)};
    running_.push_back(running);
    attempts_.push_back(chosen.attempts);
    return true;
  }

  void stop() {
    result_.stopped = true;
    for (const Running& running : running_) ::kill(running.pid, SIGTERM);
    say("stopping: each run saves and ends");
  }

  void reap() {
    for (size_t i = 0; i < running_.size();) {
      int status = 0;
      pid_t found = ::waitpid(running_[i].pid, &status, WNOHANG);
      if (found == 0 || (found < 0 && errno == EINTR)) {
        ++i;
        continue;
      }
      Running ended = running_[i];
      int attempts = attempts_[i];
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      attempts_.erase(attempts_.begin() + static_cast<std::ptrdiff_t>(i));
      judge(ended, status, attempts);
    }
  }

  void judge(const Running& ended, int status, int attempts) {
    const Job& job = *ended.job;
    const bool killed = !WIFEXITED(status);
    const int code = killed ? -1 : WEXITSTATUS(status);
    if (code == kDone) {
      ++done_;
      seconds_ += now_seconds() - ended.began;
      ++timed_;
      const std::string last = last_line(log_file(job));
      if (last.starts_with(kWarningsBegin)) count_warning(Warning::worker);
      say(str("[", done_, "/", total_, "] ", job.title, "  ", last));
    } else if (result_.stopped) {
      return;
    } else if (code == kBusy) {
      waiting_.push_back({&job, attempts, now_seconds() + kBusyPause});
    } else if (killed && attempts + 1 < kAttempts) {
      count_warning(Warning::restarted_worker);
      say(str(job.title, ": its process was killed (signal ", WTERMSIG(status), "); it goes on"));
      waiting_.push_back({&job, attempts + 1, 0});
    } else {
      ++done_;
      result_.failed.push_back({job.title, log_file(job), last_line(log_file(job))});
      say(str("[", done_, "/", total_, "] ", job.title, "  FAILED: ", result_.failed.back().reason));
    }
  }

  std::string line_of(const Running& running) const {
    int64_t step = last_step(running.job->run);
    double elapsed = now_seconds() - running.began;
    std::string text = "  " + pad_right(running.job->title, 32);
    if (running.job->steps == 0) return str(text, "  for ", human_seconds(elapsed));
    text += str("  ", step, "/", running.job->steps, " steps");
    double rate = elapsed > 0 ? static_cast<double>(step - running.first_step) / elapsed : 0;
    if (step >= running.job->steps) return text + "  evaluating";
    if (rate <= 0) return text + "  starting";
    return str(text, "  ", fixed(rate, 2), " steps/s  ETA ",
               human_seconds(static_cast<double>(running.job->steps - step) / rate));
  }

  std::string total_line() const {
    std::string text = str("  ", done_, " of ", total_, " done, ", running_.size(), " running");
    double left = static_cast<double>(total_ - done_);
    if (timed_ > 0 && left > 0) {
      double each = seconds_ / static_cast<double>(timed_);
      text += "  ETA " + human_seconds(each * std::max(left / static_cast<double>(parallel_), 0.5));
    }
    return text + "  took " + human_seconds(now_seconds() - began_);
  }

  void show(bool now) {
    double pause = stderr_is_terminal() ? 0.5 : kQuietLines;
    if (!now && now_seconds() - std::max(shown_, stderr_is_terminal() ? 0.0 : began_) < pause) return;
    shown_ = now_seconds();
    std::vector<std::string> lines;
    for (const Running& running : running_) lines.push_back(line_of(running));
    lines.push_back(total_line());
    clear();
    if (!stderr_is_terminal()) {
      for (const std::string& line : lines) log(line);
      return;
    }
    std::string block;
    for (const std::string& line : lines) block += line.substr(0, 99) + "\n";
    write_terminal(block);
    open_lines_ = lines.size();
  }

  // A message above the block of running jobs.
  void say(const std::string& message) {
    clear();
    log(message);
  }

  void clear() {
    if (open_lines_ > 0) write_terminal(str("\033[", open_lines_, "A\r\033[J"));
    open_lines_ = 0;
  }

  static void write_terminal(const std::string& text) {
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) {
      // A closed terminal must not stop a study.
    }
  }

  size_t parallel_, total_;
  const std::function<bool()>& should_stop_;
  std::deque<Waiting> waiting_;
  std::vector<Running> running_;
  std::vector<int> attempts_;  // of running_
  JobsResult result_;
  size_t done_ = 0, timed_ = 0, open_lines_ = 0;
  double began_ = 0, shown_ = 0, seconds_ = 0;
};

}  // namespace

JobsResult run_jobs(const std::vector<Job>& jobs, int64_t parallel, const std::function<bool()>& should_stop) {
  return ThreadPool(jobs, parallel, should_stop).run();
}

int64_t last_step(const std::string& run) {
  constexpr std::string_view kKey = "\"training/global_step\": ";
  std::string path = path_join(run, "steps.jsonl"), tail;
  try {
    if (!exists(path)) return 0;
    int64_t size = file_size(path), from = std::max<int64_t>(0, size - (64 << 10));
    tail.resize(static_cast<size_t>(size - from));
    read_at(path, from, tail.data(), size - from);
  } catch (const Error&) {
    return 0;  // cut by a run that resumes just now
  }
  size_t whole = tail.rfind('\n');  // the last line may be half written
  if (whole == std::string::npos) return 0;
  size_t at = tail.rfind(kKey, whole);
  return at == std::string::npos ? 0 : std::atoll(tail.c_str() + at + kKey.size());
}

void end_with_parent() {
  pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::raise(SIGTERM);  // it went just before
}

}  // namespace ucas
