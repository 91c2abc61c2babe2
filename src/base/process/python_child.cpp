#include "base/process/python_child.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"

extern char** environ;

namespace ucas {

namespace {

constexpr size_t kMostOutput = size_t{16} << 20;

std::string script_text(const std::string& script) {
  return std::string(embedded(str("python/ucas/", script, ".py")).value());
}

// The last line that says something: of a traceback what was raised.
std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) last = trim(line);
  }
  return last;
}

// Both streams to their ends, or to why the child must be ended; "" is no reason.
std::string read_both(int out, int error, double seconds, std::string& printed, std::string& said) {
  pollfd ends[2] = {{out, POLLIN, 0}, {error, POLLIN, 0}};
  std::string* texts[2] = {&printed, &said};
  char part[65536];
  double last_read = now_seconds();
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (::poll(ends, 2, 100) < 0 && errno != EINTR) return str("poll: ", std::strerror(errno));
    if (stop_requested()) return "stopped, as this program is";
    if (now_seconds() - last_read > seconds) return str("its Python has printed nothing for ", seconds, " s");
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      const ssize_t n = ::read(ends[i].fd, part, sizeof part);
      if (n == 0 || (n < 0 && errno != EINTR)) ends[i].fd = -1;
      if (n <= 0) continue;
      last_read = now_seconds();
      texts[i]->append(part, static_cast<size_t>(n));
      if (texts[i]->size() > kMostOutput) return str("its Python prints more than ", kMostOutput >> 20, " MiB");
    }
  }
  return "";
}

bool can_be_started(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  return std::ranges::any_of(split(path == nullptr ? "/usr/bin:/bin" : path, ':'), [&](const std::string& folder) {
    return ::access(path_join(folder, program).c_str(), X_OK) == 0;
  });
}

}  // namespace

std::vector<std::string> python_words(const std::string& script, const std::vector<std::string>& arguments) {
  const char* named = std::getenv("UCAS_PYTHON");
  std::vector<std::string> words = {named != nullptr && *named != '\0' ? named : "python3", "-c", script_text(script)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

void check_python_function(const std::string& option, const std::string& place) {
  if (place.empty()) return;
  const size_t colon = place.rfind(':'), cut = colon == std::string::npos ? place.rfind('.') : colon;
  const std::string module = cut == std::string::npos ? "" : place.substr(0, cut);
  const bool no_name = cut == std::string::npos || cut + 1 == place.size();
  if (module.empty() || no_name || (colon == std::string::npos && place.ends_with(".py"))) {
    throw Error(ErrorKind::python, str(option, " ", printable(place, 200),
                                       ": names no function; expected FILE.py:FUNCTION or package.module.function"));
  }
  if (module.ends_with(".py") && !exists(module)) {
    throw Error(ErrorKind::python,
                str(option, " ", printable(place, 200), ": no such file as ", printable(module, 200)));
  }
}

int start_child(std::vector<std::string> words, const ChildStreams& streams, const std::string& what) {
  const std::string program = words[0];
  const bool found = can_be_started(program);
  int error = found ? 0 : errno;
  const std::string launcher = path_join(own_folder(), "ucas-sandbox");
  words.insert(words.begin(), {launcher, "--keep", str(::getpid()), "--"});
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  const std::pair<int, int> all[] = {
      {streams.in, STDIN_FILENO}, {streams.out, STDOUT_FILENO}, {streams.error, STDERR_FILENO}};
  for (const auto& [from, to] : all) {
    if (from >= 0) posix_spawn_file_actions_adddup2(&files, from, to);
  }
  // Ignored signals are not inherited.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (int signal : {SIGPIPE, SIGHUP, SIGXFSZ}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (error == 0) error = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw Error(ErrorKind::python, str(what, ": ", printable(found ? words[0] : program, 200), " cannot be started: ",
                                       std::strerror(error), "; UCAS_PYTHON names the Python to take"));
  }
  return pid;
}

std::string run_python(const std::string& script, const std::vector<std::string>& arguments, const std::string& what,
                       double seconds) {
  int out[2], error[2];
  if (::pipe2(out, O_CLOEXEC) != 0)
    throw Error(ErrorKind::io, str(what, ": no pipe: ", std::strerror(errno)), kIoFailure);
  if (::pipe2(error, O_CLOEXEC) != 0) {
    ::close(out[0]), ::close(out[1]);
    throw Error(ErrorKind::io, str(what, ": no pipe: ", std::strerror(errno)), kIoFailure);
  }
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int pid = -1;
  const auto close_all = [](std::initializer_list<int> descriptors) {
    for (int descriptor : descriptors) ::close(descriptor);
  };
  try {
    pid = start_child(python_words(script, arguments), {nothing, out[1], error[1]}, what);
  } catch (...) {
    close_all({nothing, out[0], out[1], error[0], error[1]});
    throw;
  }
  close_all({nothing, out[1], error[1]});
  std::string printed, said;
  const std::string ended = read_both(out[0], error[0], seconds, printed, said);
  if (!ended.empty()) ::kill(pid, SIGTERM);
  close_all({out[0], error[0]});
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended.empty()) throw Error(ErrorKind::python, str(what, ": ", ended));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return printed;
  if (said.find("Traceback (most recent call last)") != std::string::npos) {
    for (const std::string& line : split(trim(said), '\n')) log(printable(line, 400));
  }
  const std::string why = last_line(said);
  throw Error(ErrorKind::python,
              str(what, ": ", why.empty() ? str("its Python ended with status ", status) : printable(why, 4000)));
}

std::string own_folder() {
  Dl_info info{};
  std::string self;
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) != 0 && info.dli_fname != nullptr)
    self = info.dli_fname;
  const size_t slash = self.rfind('/');
  return slash == std::string::npos ? "." : self.substr(0, slash);
}

std::string torch_folder() {
  if (const char* named = std::getenv("UCAS_TORCH_DIR"); named != nullptr && *named != '\0') {
    if (!is_directory(named)) {
      throw Error(ErrorKind::path, str("UCAS_TORCH_DIR=", printable(named, 400),
                                       ": no folder is there; expected .../site-packages/torch, or no such variable"));
    }
    return named;
  }
  const std::string next_to_us = path_join(own_folder(), "../torch");
  return is_directory(next_to_us) ? next_to_us : "";
}

}  // namespace ucas
