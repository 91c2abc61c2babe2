// See launcher.h. The parent of the sandboxed program: waits for it, ends it after the wall time, reports.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "verify/sandbox/launcher/launcher.h"

namespace ucas::sandbox {

namespace {

void report(const char* line) {
  if (::write(kStatus, line, std::strlen(line)) < 0) {
    // The reader has left.
  }
}

int64_t milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

int64_t whole(const char* text) { return text == nullptr ? -1 : std::strtoll(text, nullptr, 10); }

Plan read_plan(int argc, char** argv) {
  Plan plan;
  int i = 1;
  for (; i + 1 < argc && std::string_view(argv[i]) != "--"; i += 2) {
    const std::string_view key = argv[i], value = argv[i + 1];
    if (key == "--tier") {
      plan.tier = value == "a" ? Tier::a : value == "b" ? Tier::b : Tier::none;
      if (plan.tier == Tier::none && value != "none") fail("usage", EINVAL);
    } else if (key == "--parent") {
      plan.parent = static_cast<pid_t>(whole(argv[i + 1]));
    } else if (key == "--wall") {
      plan.wall_ms = whole(argv[i + 1]);
    } else if (key == "--cpu") {
      plan.cpu_seconds = whole(argv[i + 1]);
    } else if (key == "--memory") {
      plan.memory = whole(argv[i + 1]);
    } else if (key == "--landlock") {
      plan.landlock = static_cast<long>(whole(argv[i + 1]));
    } else if (key == "--forks") {
      plan.forks = true;
    } else if (key == "--ro") {
      plan.read_only.emplace_back(value);
    } else {
      fail("usage", EINVAL);
    }
  }
  if (i + 1 >= argc || plan.wall_ms <= 0 || plan.cpu_seconds <= 0 || plan.memory <= 0) fail("usage", EINVAL);
  // Its processes are distinguished from others' by their namespace alone.
  if (plan.forks && plan.tier != Tier::a) fail("usage", EINVAL);
  for (++i; i < argc; ++i) plan.argv.push_back(argv[i]);
  plan.argv.push_back(nullptr);
  return plan;
}

// Dies with who started it, also if that one is gone already.
void die_with(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail("prctl", errno);
  if (parent > 0 && ::getppid() != parent) ::_exit(kLauncherFailed);
}

void close_above(int last) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, static_cast<unsigned>(last + 1), ~0U, 0U) == 0) return;
#endif
  for (int fd = last + 1; fd < 65536; ++fd) ::close(fd);
}

// The program itself, from here on without a way back. `go` has one byte once the parent is ready for us.
[[noreturn]] void run_program(const Plan& plan, int go, uid_t uid, gid_t gid) {
  die_with(0);
  char byte = 0;
  if (::read(go, &byte, 1) != 1) ::_exit(kLauncherFailed);  // the parent is gone
  ::close(go);
  ::setsid();
  ::umask(077);
  if (plan.tier == Tier::a) {
    enter_namespaces(uid, gid);
    build_root(plan);
  } else if (plan.tier == Tier::b && ::chdir("/") != 0) {
    fail("chdir", errno);
  }
  limit_resources(plan);
  if (plan.tier != Tier::none) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs", errno);
    restrict_files(plan);
    filter_calls(plan);
  }
  // A fresh environment. A fixed order of hashes, and where the kernel lets us fixed addresses, by which objects are
  // hashed: the same program gives the same answers.
  ::personality(ADDR_NO_RANDOMIZE);
  char hashes[] = "PYTHONHASHSEED=0", language[] = "LC_ALL=C.UTF-8", home[] = "HOME=/", path[] = "PATH=/usr/bin:/bin";
  char* environment[] = {hashes, language, home, path, nullptr};
  ::execve(plan.argv[0], plan.argv.data(), environment);
  fail("exec", errno);
}

pid_t start(const Plan& plan, int go_read, int go_write, uid_t uid, gid_t gid) {
  unsigned long flags = SIGCHLD;
  if (plan.tier == Tier::a) {
    flags |= CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  }
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
  if (pid < 0) fail("namespaces", errno);
  if (pid == 0) {
    ::close(go_write);
    run_program(plan, go_read, uid, gid);
  }
  ::close(go_read);
  return pid;
}

int supervise(Plan& plan) {
  die_with(plan.parent);
  if (plan.tier == Tier::a) stage_for_all(plan);
  // Root keeps nothing that a mistake below could use; what root must not give up to other processes.
  if (plan.tier != Tier::none) become_unprivileged(plan);
  die_with(plan.parent);  // a change of user clears it
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  int go[2];
  if (::pipe2(go, O_CLOEXEC) != 0) fail("pipe", errno);
  const int64_t deadline = milliseconds() + plan.wall_ms;
  const pid_t pid = start(plan, go[0], go[1], uid, gid);
  ::close(kTask);
  ::close(kResult);
  const auto watch = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (watch < 0) {
    ::kill(pid, SIGKILL);
    fail("pidfd", errno);
  }
  if (::write(go[1], "g", 1) != 1) fail("pipe", errno);
  bool late = false;
  for (;;) {
    const int64_t left = deadline - milliseconds();
    pollfd ready{watch, POLLIN, 0};
    const int n = left <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left));
    if (n > 0) break;
    if (n < 0 && errno == EINTR) continue;
    late = true;
    ::kill(pid, SIGKILL);  // of a namespace's first process: all of its processes
    break;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  // The child has said on kStatus why it did not start.
  if (!late && WIFEXITED(status) && WEXITSTATUS(status) == kLauncherFailed) {
    report("end exit 71\n");
    return 0;
  }
  char line[64];
  if (late) {
    std::snprintf(line, sizeof line, "end wall 0\n");
  } else if (WIFEXITED(status)) {
    std::snprintf(line, sizeof line, "end exit %d\n", WEXITSTATUS(status));
  } else {
    std::snprintf(line, sizeof line, "end signal %d\n", WTERMSIG(status));
  }
  report(line);
  return 0;
}

}  // namespace

void fail(const char* layer, int error) {
  char line[160];
  std::snprintf(line, sizeof line, "setup %s %d\n", layer, error);
  report(line);
  ::_exit(kLauncherFailed);
}

}  // namespace ucas::sandbox

int main(int argc, char** argv) {
  using namespace ucas::sandbox;
  if (argc > 4 && std::string_view(argv[1]) == "--keep") keep(static_cast<pid_t>(whole(argv[2])), argv + 4);
  ::signal(SIGPIPE, SIG_IGN);
  Plan plan = read_plan(argc, argv);
  // kStatus must not reach the program; what else was inherited goes.
  if (::fcntl(kStatus, F_SETFD, FD_CLOEXEC) != 0) return kLauncherFailed;
  close_above(kStatus);
  return supervise(plan);
}
