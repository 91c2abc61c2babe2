// ucas-sandbox --keep PARENT -- PROGRAM ARG..: starts a program that the user trusts and ends as it ends, at once, and
// with everything that it started: also what has a session of its own, or holds its pipes. It ends with PARENT, too.
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "verify/sandbox/launcher/launcher.h"

namespace ucas::sandbox {

namespace {

constexpr int kLastWords = 1000;  // ms for a program that was asked to end
constexpr int kPatience = 3000;   // ms for what was killed to be gone: the rest hangs in the kernel

pid_t parent_of(pid_t pid) {
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return -1;
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = '\0';
  const std::string whole = text;
  const size_t name_end = whole.rfind(')');  // "12 (name) S 11 ..": the name may hold anything
  return name_end == std::string::npos || name_end + 4 > size ? -1 : std::atoi(text + name_end + 4);
}

// What lost its parent is this process's child by then, and so on down.
void kill_children() {
  for (int waited = 0; waited < kPatience; waited += 5) {
    if (DIR* processes = ::opendir("/proc")) {
      while (const dirent* entry = ::readdir(processes)) {
        const pid_t pid = std::atoi(entry->d_name);
        if (pid > 0 && parent_of(pid) == ::getpid()) ::kill(pid, SIGKILL);
      }
      ::closedir(processes);
    }
    pid_t gone = 0;
    while ((gone = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (gone < 0 && errno == ECHILD) return;
    ::usleep(5000);
  }
}

[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const int number = WTERMSIG(status);
    ::signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(number);
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

void keep(pid_t parent, char** argv) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t watched, before;
  sigemptyset(&watched);
  for (int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, number);
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  const int signals = ::signalfd(-1, &watched, SFD_CLOEXEC);
  const auto of_parent = static_cast<int>(::syscall(SYS_pidfd_open, parent, 0));
  if (of_parent < 0) ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // before Linux 5.3
  if (signals < 0 || ::getppid() != parent) ::_exit(kLauncherFailed);
  const pid_t program = ::fork();
  if (program < 0) ::_exit(kLauncherFailed);
  if (program == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::execvp(argv[0], argv);
    ::_exit(127);
  }
  for (int fd = 0; fd <= 1; ++fd) ::close(fd);  // its pipes are the program's alone
  pollfd ends[2] = {{signals, POLLIN, 0}, {of_parent, POLLIN, 0}};
  int status = SIGKILL, patience = -1;
  for (bool over = false; !over;) {
    const int ready = ::poll(ends, 2, patience);
    if (ready == 0 || ends[1].revents != 0) break;
    signalfd_siginfo what{};
    if (ready < 0 || ::read(signals, &what, sizeof what) != sizeof what) continue;
    if (what.ssi_signo != SIGCHLD) {
      ::kill(program, static_cast<int>(what.ssi_signo));
      patience = kLastWords;
    }
    int ended = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &ended, WNOHANG)) > 0;) {
      if (pid != program) continue;
      status = ended;
      over = true;
    }
  }
  kill_children();
  end_as(status);
}

}  // namespace ucas::sandbox
