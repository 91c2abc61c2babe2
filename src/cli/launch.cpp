#include "cli/launch.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/free_port.h"
#include "base/str.h"
#include "base/terminal/log.h"

extern char** environ;

namespace ucas {

namespace {

constexpr int64_t kMostLocalRanks = 256, kMostRestarts = 1000, kMostNodes = 4096;
constexpr time_t kGrace = 10;        // s, for the ranks that are left after one has failed
constexpr time_t kMostStopped = 10;  // s that a rank may stand still (SIGSTOP) while the others wait for it
constexpr size_t kMostSaid = 16384;  // bytes of a failed rank's text that are shown

int64_t number_of(const std::string& name, const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [at, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || at != text.data() + text.size() || value < least || value > most) {
    throw Error(ErrorKind::usage,
                str(name, " ", printable(text), ": expected a whole number from ", least, " to ", most));
  }
  return value;
}

// The value of `--name`, taken out of the words; the last one counts.
std::optional<std::string> take_word(Words& words, const std::string& name) {
  std::optional<std::string> value;
  for (size_t i = 0; i < words.size();) {
    if (words[i].starts_with(name + "=")) {
      value = words[i].substr(name.size() + 1);
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (words[i] == name) {
      if (i + 1 == words.size()) throw Error(ErrorKind::usage, str(name, ": a value is missing after it"));
      value = words[i + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    } else {
      ++i;
    }
  }
  return value;
}

bool has_word(const Words& words, const std::string& name) {
  return std::ranges::any_of(words, [&](const std::string& w) { return w == name || w.starts_with(name + "="); });
}

// Those that a CUDA program here would see.
int64_t visible_gpus() {
  if (const char* named = std::getenv("CUDA_VISIBLE_DEVICES")) {
    return *named == '\0' || *named == '-' ? 0 : static_cast<int64_t>(split(named, ',').size());
  }
  const std::string folder = "/proc/driver/nvidia/gpus";
  return is_directory(folder) ? static_cast<int64_t>(list_directory(folder).size()) : 0;
}

int64_t gpus_of(const std::string& asked) {
  const int64_t there = visible_gpus();
  if (there == 0) {
    throw Error(ErrorKind::device,
                str("--gpus ", printable(asked), ": no NVIDIA GPU is visible here (/proc/driver/nvidia/gpus, ",
                    "CUDA_VISIBLE_DEVICES); on CPUs use --ranks N"));
  }
  if (asked == "all") return there;
  const int64_t count = number_of("--gpus", asked, 1, kMostLocalRanks);
  if (count > there) throw Error(ErrorKind::device, str("--gpus ", count, ": ", there, " visible here"));
  return count;
}

struct Launch {
  Words words;  // of the program, with the command
  int64_t local = 1, restarts = 0;
  int64_t node = 0, nodes = 1;
  std::string address = "127.0.0.1";
  std::string port;  // "": a free one for each start
};

// One launcher a host: NODE_RANK, NNODES, MASTER_ADDR and MASTER_PORT say which, as torchrun's do.
void read_nodes(Launch& launch) {
  const char* nodes = std::getenv("NNODES");
  if (nodes == nullptr) {
    for (const char* name : {"RANK", "WORLD_SIZE"}) {
      if (std::getenv(name) == nullptr) continue;
      throw Error(ErrorKind::usage, str("--ranks: ", name, " is set, so that this process is one of several already: ",
                                        "leave --ranks out, or unset RANK and WORLD_SIZE"));
    }
    return;
  }
  launch.nodes = number_of("NNODES", nodes, 1, kMostNodes);
  for (const char* name : {"NODE_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    if (launch.nodes > 1 && std::getenv(name) == nullptr) {
      throw Error(ErrorKind::usage, str("NNODES=", launch.nodes, ", but ", name, " is not set"));
    }
  }
  if (launch.nodes == 1) return;
  launch.node = number_of("NODE_RANK", std::getenv("NODE_RANK"), 0, launch.nodes - 1);
  launch.address = std::getenv("MASTER_ADDR");
  launch.port = std::getenv("MASTER_PORT");
}

struct Process {
  pid_t pid = -1;
  int said = -1;       // what a rank but the first writes to standard error
  time_t stopped = 0;  // since when it stands still; 0: it does not
};

time_t seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1;  // never 0
}

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGUSR1};

sigset_t watched() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : kForwarded) sigaddset(&signals, signal);
  sigaddset(&signals, SIGCHLD);
  return signals;
}

// The ranks of one start.
class Attempt {
 public:
  explicit Attempt(const Launch& launch)
      : launch_(launch), port_(launch.port.empty() ? str(free_port()) : launch.port) {
    const sigset_t signals = watched();
    ::sigprocmask(SIG_BLOCK, &signals, &before_);
    for (int64_t r = 0; r < launch.local; ++r) start(r);
  }
  ~Attempt() {
    kill_all(SIGKILL);
    for (Process& process : processes_) {
      if (process.pid > 0) ::waitpid(process.pid, nullptr, 0);
      if (process.said >= 0) ::close(process.said);
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  // Until none is left.
  void watch() {
    const sigset_t signals = watched();
    while (alive() > 0) {
      const timespec second{1, 0};
      siginfo_t info{};
      const int signal = ::sigtimedwait(&signals, &info, &second);
      if (std::ranges::find(kForwarded, signal) != std::end(kForwarded)) {
        asked_to_stop_ = true;
        // Ctrl-C has reached the first already, whom a second signal would end at once.
        kill_all(signal, info.si_code == SI_KERNEL ? 1 : 0);
      }
      collect();
      end_what_waits();
    }
  }

  bool failed() const { return failed_.has_value(); }
  bool asked_to_stop() const { return asked_to_stop_; }
  int code() const { return failed_ ? *failed_ : interrupted_ ? kInterrupted : kDone; }
  const std::string& failure() const { return failure_; }

 private:
  int64_t number(size_t local) const { return launch_.node * launch_.local + static_cast<int64_t>(local); }
  int64_t alive() const {
    return std::ranges::count_if(processes_, [](const Process& p) { return p.pid > 0; });
  }

  void start(int64_t local) {
    Process process;
    if (local > 0) process.said = ::memfd_create("rank", MFD_CLOEXEC);
    std::vector<std::string> words = {"ucas"}, variables;
    words.insert(words.end(), launch_.words.begin(), launch_.words.end());
    const std::pair<const char*, std::string> own[] = {{"RANK", str(number(static_cast<size_t>(local)))},
                                                       {"LOCAL_RANK", str(local)},
                                                       {"WORLD_SIZE", str(launch_.nodes * launch_.local)},
                                                       {"LOCAL_WORLD_SIZE", str(launch_.local)},
                                                       {"MASTER_ADDR", launch_.address},
                                                       {"MASTER_PORT", port_}};
    for (char** one = environ; *one != nullptr; ++one) {
      const std::string_view name = std::string_view(*one).substr(0, std::string_view(*one).find('='));
      if (std::ranges::none_of(own, [&](const auto& mine) { return name == mine.first; })) variables.push_back(*one);
    }
    for (const auto& [name, value] : own) variables.push_back(str(name, "=", value));
    // This process sees at once which of its children ends or stands still.
    if (launch_.nodes == 1 && std::getenv("UCAS_HEARTBEAT") == nullptr) variables.push_back("UCAS_HEARTBEAT=60");
    std::vector<char*> argv, environment;
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& variable : variables) environment.push_back(variable.data());
    argv.push_back(nullptr);
    environment.push_back(nullptr);
    const pid_t parent = ::getpid();
    process.pid = ::fork();
    if (process.pid == 0) {            // one thread, so that all may be called here
      if (local > 0) ::setpgid(0, 0);  // the first stays with the terminal, for its progress
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) ::_exit(kInterrupted);
      ::sigprocmask(SIG_SETMASK, &before_, nullptr);
      if (process.said >= 0) ::dup2(process.said, STDERR_FILENO);
      ::execve("/proc/self/exe", argv.data(), environment.data());
      ::_exit(kNumeric);
    }
    if (process.pid < 0) {
      throw Error(ErrorKind::io, str("rank ", local, " cannot be started: ", std::strerror(errno)), kIoFailure);
    }
    processes_.push_back(process);
  }

  void kill_all(int signal, size_t from = 0) const {
    for (size_t r = from; r < processes_.size(); ++r) {
      if (processes_[r].pid > 0) ::kill(processes_[r].pid, signal);
    }
  }

  void collect() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
      const auto at = std::ranges::find(processes_, pid, &Process::pid);
      if (at == processes_.end()) continue;
      const size_t local = static_cast<size_t>(at - processes_.begin());
      if (WIFSTOPPED(status)) {
        at->stopped = seconds();
        warn(str("rank ", number(local), " stands still (signal ", WSTOPSIG(status), "); all end in ", kMostStopped,
                 " s unless it goes on"));
      } else if (WIFCONTINUED(status)) {
        at->stopped = 0;
      } else {
        at->pid = -1;
        ended(local, status);
      }
    }
  }

  void ended(size_t local, int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kNumeric;
    if (code == kInterrupted) interrupted_ = true;
    if (code == kDone || code == kInterrupted) return;
    if (failed_) return;  // it has ended because another one did
    const std::string how =
        WIFSIGNALED(status) ? str("was killed by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")")
                            : str("ended with exit code ", code);
    fail(code, str("rank ", number(local), " ", how));
    if (code != kBadInput) log(str("ucas: ", failure_));
    const std::string said = said_by(processes_[local]);
    if (!said.empty()) log(said);
  }

  void fail(int code, const std::string& text) {
    failed_ = code;
    failure_ = text;
    end_at_ = seconds() + kGrace;
  }

  static std::string said_by(const Process& process) {
    if (process.said < 0) return "";
    const off_t size = ::lseek(process.said, 0, SEEK_END);
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kMostSaid));
    std::string text(static_cast<size_t>(std::max<off_t>(0, size - from)), '\0');
    const ssize_t n = ::pread(process.said, text.data(), text.size(), from);
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, n)));
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  void end_what_waits() {
    for (size_t r = 0; r < processes_.size() && !failed_; ++r) {
      if (processes_[r].pid < 0 || processes_[r].stopped == 0) continue;
      if (seconds() < processes_[r].stopped + kMostStopped) continue;
      fail(kNumeric, str("rank ", number(r), " stood still for ", kMostStopped, " s"));
      log(str("ucas: ", failure_));
      end_at_ = seconds();
    }
    if (failed_ && seconds() >= end_at_) kill_all(SIGKILL);
  }

  const Launch& launch_;
  std::string port_;
  sigset_t before_{};
  std::vector<Process> processes_;
  bool asked_to_stop_ = false, interrupted_ = false;
  std::optional<int> failed_;
  std::string failure_;
  time_t end_at_ = 0;
};

int run_ranks(Launch launch) {
  for (int64_t restart = 0;; ++restart) {
    int code = kDone;
    {
      Attempt attempt(launch);
      attempt.watch();
      code = attempt.code();
      const bool again = attempt.failed() && code != kBadInput && !attempt.asked_to_stop() && restart < launch.restarts;
      if (!again) return code;
    }
    const bool resumes = launch.words.front() == "train";  // the others go on by themselves
    log(str("restart ", restart + 1, " of ", launch.restarts, resumes ? " with --resume auto" : ""));
    if (resumes && !has_word(launch.words, "--resume")) {
      launch.words.push_back("--resume");
      launch.words.push_back("auto");
    }
  }
}

}  // namespace

std::optional<int> launch_ranks(const std::string& command, Words& words) {
  constexpr std::array kOfRanks = {"train", "sft", "evaluate", "generate", "score", "doctor"};
  if (std::ranges::find(kOfRanks, command) == kOfRanks.end()) return std::nullopt;
  const std::optional<std::string> ranks = take_word(words, "--ranks"), gpus = take_word(words, "--gpus"),
                                   restarts = command == "train" || command == "sft" ? take_word(words, "--restarts")
                                                                                     : std::nullopt;
  if (!ranks && !gpus) {
    if (restarts) throw Error(ErrorKind::usage, "--restarts N goes with --ranks N or --gpus all|N");
    return std::nullopt;
  }
  if (ranks && gpus) throw Error(ErrorKind::usage, "--ranks and --gpus both say how many processes: give one");
  Launch launch;
  launch.local = gpus ? gpus_of(*gpus) : number_of("--ranks", *ranks, 1, kMostLocalRanks);
  if (restarts) launch.restarts = number_of("--restarts", *restarts, 0, kMostRestarts);
  read_nodes(launch);
  if (gpus && !has_word(words, "--device")) words.insert(words.end(), {"--device", "cuda"});
  if (launch.local * launch.nodes == 1 && launch.restarts == 0) return std::nullopt;
  launch.words = words;
  launch.words.insert(launch.words.begin(), command);
  return run_ranks(std::move(launch));
}

}  // namespace ucas
