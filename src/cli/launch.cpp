// `ucas train CONFIG .. --ranks N` and `--gpus all|N`: the processes of one host, started and watched without torchrun;
// those of `ucas sft`, `evaluate`, `generate` and `score`, too. Each rank is this program again with
// torchrun's variables (sharding/ranks.h). This process loads no LibTorch. It forwards SIGINT, SIGTERM and SIGUSR1 to
// all ranks. Where a rank fails the others get ten seconds, and what is said then is what that one said which failed
// first by itself.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"

namespace ucas {

namespace {

constexpr double kGrace = 10;  // s, for the ranks that are left after one has failed

// The value of `--name`, taken out of the words; "": it is not there.
std::string take_word(Words& words, const std::string& name) {
  const auto at = std::ranges::find_if(words, [&](const auto& w) { return w == name || w.starts_with(name + "="); });
  if (at == words.end()) return "";
  const bool apart = *at == name;
  if (apart && at + 1 == words.end()) throw Error(ErrorKind::usage, str(name, ": a value is missing after it"));
  const std::string value = apart ? *(at + 1) : at->substr(name.size() + 1);
  words.erase(at, at + (apart ? 2 : 1));
  return value;
}

// One host's.
int64_t count_of(const std::string& name, const std::string& text) {
  const int64_t most = name == "--gpus" ? cuda_devices() : 256;
  if (most == 0) {
    throw Error(ErrorKind::device, str(name, " ", printable(text), ": no NVIDIA GPU is visible here (the ",
                                       "driver's libcuda.so.1, CUDA_VISIBLE_DEVICES); on CPUs use --ranks N"));
  }
  if (name == "--gpus" && text == "all") return most;
  const bool number = text.size() < 6 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (const int64_t count = number ? std::atoll(text.c_str()) : 0; count >= 1 && count <= most) return count;
  throw Error(ErrorKind::usage, str(name, " ", printable(text), ": expected a whole number from 1 to ", most));
}

class Launch {
 public:
  Launch(const Words& words, int64_t ranks) : words_(words) {
    sigemptyset(&watched_);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&watched_, signal);
    ::sigprocmask(SIG_BLOCK, &watched_, &before_);
    std::random_device random;
    const std::string key = str(random(), "-", random(), "-", random(), "-", random(), "/");
    const Listener store = listen_on_loopback(0);
    for (int64_t rank = 0; rank < ranks; ++rank) start(rank, ranks, store, key);
    ::close(store.fd);
  }

  // Until none is left; the exit code.
  int watch() {
    while (std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.pid > 0; })) {
      const timespec second{1, 0};
      const int signal = ::sigtimedwait(&watched_, nullptr, &second);
      if (signal > 0 && signal != SIGCHLD) tell_all(signal);
      int status = 0;
      for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        const auto at = std::ranges::find(ranks_, pid, &Rank::pid);
        if (at != ranks_.end()) ended(*at, status);
      }
      if (failed_ && now_seconds() > failed_at_ + kGrace) tell_all(SIGKILL);
    }
    return failed_ ? said_of_failure() : interrupted_ ? kInterrupted : kDone;
  }

 private:
  struct Rank {
    int64_t number = 0;
    int said = -1;  // what a rank but the first writes to standard error
    pid_t pid = -1;
    int status = 0;
    // Whom another one's end has ended says kNumeric.
    bool failed_by_itself() const { return WIFSIGNALED(status) || WEXITSTATUS(status) != kNumeric; }
  };

  void start(int64_t number, int64_t size, const Listener& store, const std::string& key) {
    Rank rank{number, number > 0 ? ::memfd_create("rank", MFD_CLOEXEC) : -1};
    const pid_t parent = ::getpid();
    rank.pid = ::fork();
    if (rank.pid < 0) throw Error(ErrorKind::io, str("rank ", number, ": ", std::strerror(errno)), kIoFailure);
    ranks_.push_back(rank);
    if (rank.pid > 0) return;
    // One thread, so that all may be called here. The first stays with the terminal, for its progress.
    if (number > 0) ::setpgid(0, 0), ::dup2(rank.said, STDERR_FILENO);
    if (number == 0) ::fcntl(store.fd, F_SETFD, 0), ::setenv("UCAS_STORE_FD", str(store.fd).c_str(), 1);
    const std::pair<const char*, std::string> variables[] = {
        {"RANK", str(number)},       {"WORLD_SIZE", str(size)},       {"MASTER_ADDR", "127.0.0.1"},
        {"LOCAL_RANK", str(number)}, {"LOCAL_WORLD_SIZE", str(size)}, {"MASTER_PORT", str(store.port)},
        {"UCAS_STORE_KEY", key}};
    for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(kInterrupted);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    std::vector<char*> words = {const_cast<char*>("ucas")};
    for (const std::string& word : words_) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv("/proc/self/exe", words.data());
    ::_exit(kNumeric);
  }

  void tell_all(int signal) const {
    for (const Rank& rank : ranks_)
      if (rank.pid > 0) ::kill(rank.pid, signal);
  }

  void ended(Rank& rank, int status) {
    rank.pid = -1;
    rank.status = status;
    interrupted_ = interrupted_ || (WIFEXITED(status) && WEXITSTATUS(status) == kInterrupted);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == kDone || WEXITSTATUS(status) == kInterrupted)) return;
    if (!failed_) failed_at_ = now_seconds();
    const bool killed_here = failed_ && now_seconds() > failed_at_ + kGrace;
    if (!failed_ || (!killed_here && !failed_->failed_by_itself() && rank.failed_by_itself())) failed_ = rank;
  }

  int said_of_failure() const {
    const int status = failed_->status, code = WIFEXITED(status) ? WEXITSTATUS(status) : kNumeric;
    const std::string how =
        WIFEXITED(status) ? str("ended with exit code ", code)
                          : str("was killed by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
    if (code != kBadInput) log(str("ucas: rank ", failed_->number, " ", how));
    std::string text(16384, '\0');
    const off_t all = std::max<off_t>(0, ::lseek(failed_->said, 0, SEEK_END));
    const ssize_t n = ::pread(failed_->said, text.data(), text.size(), std::max<off_t>(0, all - std::ssize(text)));
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, n)));
    if (!trim(text).empty()) log(std::string(trim(text)));
    return code;
  }

  const Words words_;  // of the program, with the command
  sigset_t watched_{}, before_{};
  std::vector<Rank> ranks_;
  bool interrupted_ = false;
  std::optional<Rank> failed_;  // first by itself, else first
  double failed_at_ = 0;
};

}  // namespace

std::optional<int> launch_ranks(const std::string& command, Words& words) {
  if (command != "train") return std::nullopt;
  const std::string ranks = take_word(words, "--ranks"), gpus = take_word(words, "--gpus");
  if (ranks.empty() && gpus.empty()) return std::nullopt;
  if (!ranks.empty() && !gpus.empty()) throw Error(ErrorKind::usage, "--ranks and --gpus both say how many: give one");
  if (std::getenv("RANK") != nullptr || std::getenv("WORLD_SIZE") != nullptr) {
    throw Error(ErrorKind::usage,
                "--ranks: RANK or WORLD_SIZE is set, so that this process is one of several already: leave --ranks "
                "out, or unset them");
  }
  const int64_t count = gpus.empty() ? count_of("--ranks", ranks) : count_of("--gpus", gpus);
  const auto device = [](const std::string& word) { return word == "--device" || word.starts_with("--device="); };
  if (!gpus.empty() && std::ranges::none_of(words, device)) words.insert(words.end(), {"--device", "cuda"});
  if (count == 1) return std::nullopt;
  Words all = words;
  all.insert(all.begin(), command);
  return Launch(all, count).watch();
}

}  // namespace ucas
