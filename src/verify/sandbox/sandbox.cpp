#include "verify/sandbox/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas::code {

namespace {

constexpr int kAttempts = 3;     // of a run that the sandbox failed, not the program
constexpr double kBackstop = 2;  // seconds that the launcher may be late, before it is taken for dead

// Prints what a sandbox must show of an interpreter: itself, its library, the folders of what it loads.
constexpr const char* kProbe = R"(
import sys, os
print(os.path.realpath(sys.executable))
print('.'.join(map(str, sys.version_info[:3])))
print(os.path.dirname(os.__file__))
for name in ('_ctypes', 'zlib', '_decimal', 'math', '_hashlib', '_bz2', 'array'):
    try:
        __import__(name)
    except ImportError:
        pass
for line in open('/proc/self/maps'):
    path = line.split(None, 5)[5:]
    if path and '.so' in path[0]:
        print(os.path.dirname(path[0].strip()))
)";

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw Error(ErrorKind::io, str("cannot make a pipe: ", std::strerror(errno)), kIoFailure);
    read_end = above(ends[0]);
    write_end = above(ends[1]);
  }
  ~Pipe() {
    close(read_end);
    close(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }

 private:
  // Out of the way of the numbers that the launcher gets.
  static int above(int fd) {
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, 16);
    if (moved < 0) throw Error(ErrorKind::io, str("cannot make a pipe: ", std::strerror(errno)), kIoFailure);
    ::close(fd);
    return moved;
  }
};

// In a process group of its own (Ctrl-C is for this process), with no signal blocked and an empty environment.
pid_t spawn(const std::vector<std::string>& words, const std::vector<std::pair<int, int>>& descriptors) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  char* nothing[] = {nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  for (int fd = 0; fd <= 2; ++fd) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  for (const auto& [from, to] : descriptors) posix_spawn_file_actions_adddup2(&files, from, to);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), nothing);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw Error(ErrorKind::sandbox, str(words[0], ": cannot be started: ", std::strerror(error)), kNoSandbox);
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// What an interpreter prints when it is asked for kProbe; empty where it cannot be started.
std::vector<std::string> ask(const std::string& python) {
  Pipe out;
  pid_t pid = 0;
  try {
    pid = spawn({python, "-I", "-S", "-c", kProbe}, {{out.write_end, 1}});
  } catch (const Error&) {
    return {};
  }
  Pipe::close(out.write_end);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(out.read_end, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno != EINTR) break;
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  if (wait_for(pid) != 0) return {};
  std::vector<std::string> lines = split(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines.size() < 3 ? std::vector<std::string>() : lines;
}

// A launcher that is gone must not end this process by SIGPIPE, whatever the program that uses this library does of it.
ssize_t write_quietly(int fd, const char* bytes, size_t size) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t n = ::write(fd, bytes, size);
  const int error = errno;
  const timespec now{};
  if (n < 0 && error == EPIPE && sigismember(&before, SIGPIPE) == 0) ::sigtimedwait(&pipe, nullptr, &now);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return n;
}

// The frames in what has come so far; false: `take` has had enough, or they are none.
class Frames {
 public:
  explicit Frames(const std::function<bool(const Frame&)>& take) : take_(take) {}
  bool ready() const { return ready_; }

  bool add(std::string_view bytes) {
    buffer_ += bytes;
    for (;;) {
      const size_t end = buffer_.find('\n', at_);
      if (end == std::string::npos) break;
      Frame frame;
      int64_t size = 0;
      if (!head(std::string_view(buffer_).substr(at_, end - at_), frame, size)) return false;
      if (static_cast<int64_t>(buffer_.size() - end - 1) < size) break;
      frame.payload = std::string_view(buffer_).substr(end + 1, static_cast<size_t>(size));
      at_ = end + 1 + static_cast<size_t>(size);
      ready_ |= frame.kind == 'r';
      if (!take_(frame)) return false;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    return true;
  }

 private:
  // "3 v 12"
  static bool head(std::string_view line, Frame& frame, int64_t& size) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.size() < space + 4 || line[space + 2] != ' ') return false;
    frame.kind = line[space + 1];
    const auto whole = [](std::string_view digits, int64_t& value) {
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return error == std::errc() && end == digits.data() + digits.size() && value >= 0;
    };
    return whole(line.substr(0, space), frame.number) && whole(line.substr(space + 3), size);
  }

  const std::function<bool(const Frame&)>& take_;
  std::string buffer_;
  size_t at_ = 0;
  bool ready_ = false;
};

// Talks to one launcher until its pipes end: feeds the task, takes the frames, keeps the status line.
class Conversation {
 public:
  Conversation(const std::string& task, int64_t results, const std::function<bool(const Frame&)>& take)
      : task_(task), results_(results), frames_(take) {}

  // false: it must be killed, `ended` says why.
  bool go_on(int& task_end, int result_end, int status_end, double deadline, Ended& ended) {
    ::fcntl(task_end, F_SETFL, O_NONBLOCK);
    ::fcntl(result_end, F_SETFL, O_NONBLOCK);
    pollfd all[3] = {{task_.empty() ? -1 : task_end, POLLOUT, 0}, {result_end, POLLIN, 0}, {status_end, POLLIN, 0}};
    while (all[1].fd >= 0 || all[2].fd >= 0) {
      const double left = deadline - now_seconds();
      if (left <= 0) {
        ended = {.how = Ended::How::failed, .reason = "the launcher does not answer"};
        return false;
      }
      if (::poll(all, 3, static_cast<int>(left * 1000) + 1) < 0 && errno != EINTR) break;
      if (all[0].fd >= 0 && all[0].revents != 0 && !feed(all[0].fd)) {
        Pipe::close(task_end);  // the harness reads to its end
        all[0].fd = -1;
      }
      if (all[1].fd >= 0 && all[1].revents != 0 && !take(all[1].fd, ended)) {
        if (ended.how != Ended::How::done) return false;
        all[1].fd = -1;
      }
      if (all[2].fd >= 0 && all[2].revents != 0 && !receive(all[2].fd)) all[2].fd = -1;
    }
    return true;
  }

  bool ready() const { return frames_.ready(); }
  const std::string& status() const { return status_; }

 private:
  bool feed(int fd) {
    while (fed_ < task_.size()) {
      const ssize_t n = write_quietly(fd, task_.data() + fed_, task_.size() - fed_);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      fed_ += static_cast<size_t>(n);
    }
    return false;
  }

  bool take(int fd, Ended& ended) {
    char buffer[1 << 16];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    ended.how = Ended::How::done;
    if (n <= 0) return false;
    taken_ += n;
    if (taken_ > results_) {
      ended.how = Ended::How::too_much;
      return false;
    }
    if (frames_.add(std::string_view(buffer, static_cast<size_t>(n)))) return true;
    ended.how = Ended::How::stopped;
    return false;
  }

  bool receive(int fd) {
    char buffer[256];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    status_.append(buffer, static_cast<size_t>(n));
    return true;
  }

  const std::string& task_;
  int64_t results_, taken_ = 0;
  Frames frames_;
  std::string status_;
  size_t fed_ = 0;
};

// "end exit 0", "end signal 9", "end wall 0", "setup landlock 95": the first line counts.
Ended read_status(const std::string& status, bool ready) {
  const std::vector<std::string> words = split(status.substr(0, status.find('\n')), ' ');
  Ended ended;
  if (words.size() != 3) {
    ended.reason = "the launcher was killed";
    return ended;
  }
  const int number = std::atoi(words[2].c_str());
  if (words[0] == "setup") {
    ended.reason = str("layer ", words[1], ": ", std::strerror(number));
  } else if (words[1] == "wall") {
    ended.how = Ended::How::out_of_time;
  } else if (!ready && words[1] == "exit") {
    ended.reason = str("the interpreter ended with ", number, " before it was ready");
  } else if (!ready) {
    ended.reason = str("the interpreter was killed by signal ", number, " before it was ready");
  } else {
    ended.how = words[1] == "exit" ? Ended::How::done : Ended::How::killed;
    ended.code = number;
  }
  return ended;
}

const char* remedy(const std::string& why) {
  if (why.find("namespace") != std::string::npos || why.find("mount") != std::string::npos ||
      why.find("pivot") != std::string::npos) {
    return "allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0, or "
           "another seccomp profile of the container)";
  }
  if (why.find("landlock") != std::string::npos) return "boot a kernel of 5.13 or later with lsm=landlock";
  if (why.find("seccomp") != std::string::npos) return "use a kernel with CONFIG_SECCOMP_FILTER";
  if (why.find("unprivileged_user") != std::string::npos) return "run as a user other than root";
  if (why.find("exec") != std::string::npos || why.find("interpreter") != std::string::npos) {
    return "name a Python 3.8 or later that every user may read and start: code.python";
  }
  return "see ucas doctor --sandbox";
}

// Attacks that anyone may do outside a sandbox, whatever the container.
constexpr const char* kHitBare[] = {"reads_a_secret_file",      "writes_a_file_elsewhere",
                                    "removes_a_file_elsewhere", "forks",
                                    "signals_its_parent",       "listens_on_tcp",
                                    "changes_a_mode",           "changes_a_time",
                                    "empties_a_file",           "empties_a_file_by_reading",
                                    "chooses_a_signal",         "owns_a_signal_to_its_parent"};

constexpr const char* kSecret = "a1b2c3d4-secret";
const char kReadable[8] = {1, 2, 3, 4, 5, 6, 7, 8};

// What there is to attack: a folder that anyone may enter and write to, and sockets that listen.
class Bait {
 public:
  Bait() {
    const char* temporary = std::getenv("TMPDIR");
    std::string pattern = str(temporary == nullptr || *temporary == '\0' ? "/tmp" : temporary, "/ucas-sandbox-XXXXXX");
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw Error(ErrorKind::io, str(pattern, ": cannot create the directory: ", std::strerror(errno)), kIoFailure);
    }
    folder_ = pattern;
    ::chmod(folder_.c_str(), 0755);
    write_file(folder_ + "/secret", kSecret);
    ::mkdir((folder_ + "/open").c_str(), 0777);
    ::chmod((folder_ + "/open").c_str(), 0777);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    stream_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (stream_ >= 0 && ::bind(stream_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
        ::listen(stream_, 8) == 0 && ::getsockname(stream_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    const std::string name = folder_ + "/open/socket";
    if (name.size() >= sizeof path.sun_path) return;
    std::memcpy(path.sun_path, name.c_str(), name.size() + 1);
    local_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (local_ >= 0 && ::bind(local_, reinterpret_cast<sockaddr*>(&path), sizeof path) == 0) {
      ::listen(local_, 8);
      ::chmod(name.c_str(), 0777);
    }
  }
  ~Bait() {
    for (int fd : {stream_, local_}) {
      if (fd >= 0) ::close(fd);
    }
    try {
      remove_all(folder_);
    } catch (const Error&) {
      // A folder in /tmp that stays is no reason to stop.
    }
  }
  Bait(const Bait&) = delete;
  Bait& operator=(const Bait&) = delete;

  std::string program() const {
    write_file(folder_ + "/open/victim", "x");
    write_file(folder_ + "/open/kept", "x");
    for (const char* name : {"/open/victim", "/open/kept"}) ::chmod((folder_ + name).c_str(), 0666);
    return str("FOLDER, SECRET, PORT, PARENT, ADDRESS = ", "\"", folder_, "\", \"", kSecret, "\", ", port_, ", ",
               ::getpid(), ", ", reinterpret_cast<uint64_t>(kReadable), "\n", *embedded("verify/sandbox/attacks.py"));
  }

 private:
  std::string folder_;
  int stream_ = -1, local_ = -1, port_ = 0;
};

// Names of attacks and whether they hit; `why` where the run gave no result.
std::map<std::string, bool> try_all(const Sandbox& sandbox, const std::string& program, std::string& why) {
  std::map<std::string, bool> results;
  why = "the attacks gave no result";
  const auto take = [&](const Frame& frame) {
    if (frame.kind == 'c' || frame.kind == 'e') why = str("the attacks could not be run: ", printable(frame.payload));
    if (frame.kind != 'v') return true;
    const auto value = parse_value(frame.payload);
    if (!value || value->kind != Value::Kind::dict) return true;
    for (size_t i = 0; i + 1 < value->items.size(); i += 2)
      results[value->items[i].text] = value->items[i + 1].real != 0;
    return true;
  };
  // A launcher may be killed; a layer that is missing is missing every time.
  for (int attempt = 0; attempt < 3 && results.empty(); ++attempt) {
    const Ended ended = sandbox.run(make_task("steps", program, {"tattack_all()"}), 1 << 20, take);
    if (ended.how == Ended::How::failed) why = ended.reason;
    if (why.starts_with("layer")) break;
  }
  return results;
}

}  // namespace

void CodeOptions::fields(Fields& f) {
  f.field("python", python,
          "Python interpreter for model-written programs; empty = /usr/bin/python3, else the one in PATH");
  f.choice("sandbox", sandbox,
           "sandbox of model-written programs: a = namespaces, Landlock, seccomp, limits; b = all but namespaces; auto "
           "= a, else b, else exit 78; none = no protection, for trusted programs");
  f.field("wall_seconds", wall_seconds, Range{1, 3600}, "wall-clock seconds per response, over all tests");
}

std::string make_task(std::string_view mode, std::string_view source, const std::vector<std::string>& steps) {
  std::string task;
  const auto blob = [&](std::string_view bytes) { task += str(bytes.size(), "\n") += bytes; };
  blob(mode);
  blob(str(steps.size()));
  blob(source);
  for (const std::string& step : steps) blob(step);
  return task;
}

Sandbox Sandbox::untried(const CodeOptions& options, SandboxChoice tier) {
  Sandbox box;
  box.options_ = options;
  box.tier_ = tier;
  box.launcher_ = path_join(own_folder(), "ucas-sandbox");
  box.harness_ = std::string(embedded("verify/sandbox/harness.py").value_or(""));
  if (!exists(box.launcher_)) {
    throw Error(ErrorKind::sandbox, str(box.launcher_, ": not found; it is built with the program (`make build`)"),
                kNoSandbox);
  }
  box.find_python();
  return box;
}

Sandbox::Sandbox(const CodeOptions& options) {
  const SandboxChoice asked = options.sandbox;
  *this = untried(options, asked == SandboxChoice::automatic ? SandboxChoice::a : asked);
  if (asked == SandboxChoice::none) {
    warn("code.sandbox = \"none\": what the model writes runs as this user, with everything that it may do");
    return;
  }
  std::string why_not_a;
  if (works(why_not_a)) return;
  if (asked == SandboxChoice::automatic) {
    tier_ = SandboxChoice::b;
    std::string why_not_b;
    if (works(why_not_b)) {
      why_ = why_not_a;
      return;
    }
    why_not_a = str("tier a: ", why_not_a, "; tier b: ", why_not_b);
  }
  throw Error(ErrorKind::sandbox,
              str("code that a model wrote cannot be run safely here: ", why_not_a, "; ", remedy(why_not_a)),
              kNoSandbox);
}

// Trying is the only way to know.
bool Sandbox::works(std::string& why) {
  for (const Attack& attack : attack_all(*this)) {
    if (attack.sandboxed == Attack::Result::failed) {
      why = attack.name;
      return false;
    }
    if (attack.sandboxed == Attack::Result::hit) {
      why = str("the attack \"", attack.name, "\" got through");
      return false;
    }
    if (attack.must_hit_bare && attack.bare != Attack::Result::hit) {
      why = str("the attack \"", attack.name, "\" does not even work outside the sandbox: the self-test is broken");
      return false;
    }
  }
  return true;
}

void Sandbox::find_python() {
  std::vector<std::string> candidates = {"/usr/bin/python3", "/usr/local/bin/python3"};
  if (!options_.python.empty()) {
    candidates = {options_.python};
  } else if (const char* path = std::getenv("PATH")) {
    for (const std::string& folder : split(path, ':')) candidates.push_back(path_join(folder, "python3"));
  }
  for (const std::string& candidate : candidates) {
    if (candidate.find('/') == std::string::npos || !exists(candidate)) continue;
    const std::vector<std::string> lines = ask(candidate);
    if (lines.empty()) continue;
    python_ = lines[0];
    version_ = lines[1];
    // Links at the root of the tree through which a program names its loader are shown, too.
    std::set<std::string> shown(lines.begin() + 2, lines.end());
    for (const char* loader : {"/lib", "/lib64", "/usr/lib64"}) {
      if (exists(loader)) shown.insert(loader);
    }
    shown.insert({python_, "/etc/ld.so.cache"});
    read_only_.assign(shown.begin(), shown.end());
    return;
  }
  throw Error(ErrorKind::sandbox,
              str("no Python 3 was found to run code with (", join(candidates, ", "), "); name one with code.python"),
              kNoSandbox);
}

std::string launcher_of_forks(const Sandbox& sandbox, const std::string& what) {
  const std::string why = sandbox.why();
  if (sandbox.tier() == SandboxChoice::a) return path_join(own_folder(), "ucas-sandbox");
  throw Error(ErrorKind::sandbox,
              str(what, " may run what a model wrote, and run in tier a of the sandbox alone, not in ",
                  word_of(sandbox.tier()), why.empty() ? "" : ": ", why, "; ", remedy(why.empty() ? "namespace" : why)),
              kNoSandbox);
}

Ended Sandbox::run(const std::string& task, int64_t results, const std::function<bool(const Frame&)>& take) const {
  const double began = now_seconds();
  const char* tier = tier_ == SandboxChoice::none ? "none" : tier_ == SandboxChoice::b ? "b" : "a";
  std::vector<std::string> words = {launcher_,
                                    "--tier",
                                    tier,
                                    "--parent",
                                    str(::getpid()),
                                    "--wall",
                                    str(options_.wall_seconds * 1000),
                                    "--cpu",
                                    str(options_.cpu()),
                                    "--memory",
                                    str(options_.memory_mib << 20)};
  if (landlock_ > 0) words.insert(words.end(), {"--landlock", str(landlock_)});
  for (const std::string& path : read_only_) words.insert(words.end(), {"--ro", path});
  // No site, no bytecode written, nothing of the user's; PYTHONHASHSEED is in the environment that the launcher makes.
  words.insert(words.end(), {"--", python_, "-s", "-S", "-B", "-c", harness_});

  Pipe for_task, for_results, for_status;
  const pid_t launcher = spawn(words, {{for_task.read_end, 3}, {for_results.write_end, 4}, {for_status.write_end, 5}});
  Pipe::close(for_task.read_end);
  Pipe::close(for_results.write_end);
  Pipe::close(for_status.write_end);
  Conversation conversation(task, results, take);
  Ended ended;
  const double deadline = began + static_cast<double>(options_.wall_seconds) + kBackstop;
  const bool over = conversation.go_on(for_task.write_end, for_results.read_end, for_status.read_end, deadline, ended);
  if (!over) ::kill(launcher, SIGKILL);  // and with it, by the kernel, what it started
  wait_for(launcher);
  if (over) ended = read_status(conversation.status(), conversation.ready());
  ended.seconds = now_seconds() - began;
  return ended;
}

Ended Sandbox::insist(const std::string& task, int64_t results, const std::function<void()>& begin,
                      const std::function<bool(const Frame&)>& take) const {
  for (int attempt = 1;; ++attempt) {
    begin();
    Ended ended = run(task, results, take);
    if (ended.how != Ended::How::failed) return ended;
    count_warning(Warning::sandbox);
    warn(str("the sandbox failed on a program (", ended.reason, ")", attempt < kAttempts ? "; tried again" : ""));
    if (attempt < kAttempts) continue;
    throw Error(ErrorKind::sandbox,
                str("a program could not be run ", kAttempts, " times in a row (", ended.reason,
                    "); nothing was concluded from it. See ucas doctor --sandbox"),
                kNoSandbox);
  }
}

std::vector<Attack> attack_all(const Sandbox& sandbox) {
  const Bait bait;
  std::string why, why_bare;
  const auto sandboxed = try_all(sandbox, bait.program(), why);
  if (sandboxed.empty()) return {{.name = why}};
  const auto bare = try_all(Sandbox::untried(sandbox.options(), SandboxChoice::none), bait.program(), why_bare);
  if (bare.empty()) return {{.name = "outside the sandbox: " + why_bare}};
  std::vector<Attack> attacks;
  const auto result = [](bool hit) { return hit ? Attack::Result::hit : Attack::Result::missed; };
  for (const auto& [name, hit] : sandboxed) {
    const auto control = bare.find(name);
    const bool must = std::ranges::any_of(kHitBare, [&](const char* n) { return name == n; });
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    attacks.push_back({words, result(hit), result(control != bare.end() && control->second), must});
  }
  return attacks;
}

}  // namespace ucas::code
