#include "train/loop/trackers.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

constexpr double kLastWords = 60;  // seconds that the end of a run waits for what is still to be sent
constexpr auto kLook = std::chrono::milliseconds(500);

std::string ending_of(int status) {
  return WIFSIGNALED(status) ? str("ended by signal ", WTERMSIG(status))
                             : str("ended with exit code ", WEXITSTATUS(status));
}

// The last line of its log, which says why.
std::string last_words(const std::string& log) {
  try {
    std::string last;
    for (const std::string& line : split(read_file(log, int64_t{64} << 20), '\n')) {
      if (!trim(line).empty()) last = trim(line);
    }
    return last.empty() ? "" : str(" (", printable(last, 300), ")");
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

class Trackers::Watch {
 public:
  Watch(const std::vector<std::string>& names, const std::string& run) : run_(run) {
    for (const std::string& name : names) start(name);
    if (!children_.empty()) thread_ = std::thread([this] { watch(); });
  }

  ~Watch() {
    for (Child& child : children_) ::close(child.to);
    for (double waited = 0; waited < kLastWords && !all_ended(); waited += 0.1) ::usleep(100'000);
    {
      const std::lock_guard lock(guard_);
      over_ = true;
    }
    woken_.notify_all();
    if (thread_.joinable()) thread_.join();
    for (const Child& child : children_) {
      if (child.pid < 0) continue;
      log(str("tracker ", child.name, " is still sending, as process ", child.pid, "; ", later(child)));
    }
  }

 private:
  struct Child {
    std::string name, log;
    int pid = -1, to = -1;  // its standard input: open as long as the run goes on
  };

  void start(const std::string& name) {
    Child child{.name = name, .log = path_join(run_, str("track-", name, ".log"))};
    int in[2];
    const int out = ::open(child.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (out < 0 || ::pipe2(in, O_CLOEXEC) != 0) {
      warn(str("tracker ", name, " is not started: ", std::strerror(errno), "; ", later(child)));
      if (out >= 0) ::close(out);
      return;
    }
    try {
      child.pid = start_child(python_words("track", {run_, "--to", name, "--until-end-of-input"}),
                              {.in = in[0], .out = out, .error = out}, "tracker " + name, Kept::no);  // it may send on
    } catch (const Error& error) {
      warn(str(error.what(), "; the run goes on without it"));
    }
    ::close(in[0]);
    ::close(out);
    child.to = in[1];
    if (child.pid < 0) {
      ::close(child.to);
    } else {
      children_.push_back(std::move(child));
    }
  }

  std::string later(const Child& child) const {
    return str("`python -m ucas.track ", printable(run_, 300), " --to ", child.name, "` sends what it lacks");
  }

  bool all_ended() {
    const std::lock_guard lock(guard_);
    return std::ranges::all_of(children_, [](const Child& child) { return child.pid < 0; });
  }

  void watch() {
    std::unique_lock lock(guard_);
    while (!over_) {
      for (Child& child : children_) {
        int status = 0;
        if (child.pid < 0 || ::waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
        child.pid = -1;
        if (status == 0) continue;
        warn(str("tracker ", child.name, " ", ending_of(status), last_words(child.log),
                 "; the run goes on without it, and ", later(child)));
      }
      woken_.wait_for(lock, kLook);
    }
  }

  const std::string run_;
  std::vector<Child> children_;
  std::mutex guard_;
  std::condition_variable woken_;
  bool over_ = false;
  std::thread thread_;
};

Trackers::Trackers(const std::vector<std::string>& names, const std::string& run)
    : watch_(std::make_unique<Watch>(names, run)) {}

Trackers::~Trackers() = default;

}  // namespace ucas
