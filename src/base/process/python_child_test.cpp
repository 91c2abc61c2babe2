#include "base/process/python_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

// What run_python says of a Python that is this script of the shell.
std::string said_of(const std::string& script, double seconds) {
  const testing::TemporaryDirectory scratch;
  const std::string python = scratch.path() + "/python";
  write_file(python, "#!/bin/sh\n" + script);
  ::chmod(python.c_str(), 0755);
  ::setenv("UCAS_PYTHON", python.c_str(), 1);
  std::string said = "nothing";
  try {
    run_python("reasoning", {"tasks"}, "rg:task", seconds);
  } catch (const Error& error) {
    said = error.what();
  }
  ::unsetenv("UCAS_PYTHON");
  return said;
}

TEST(python_child, that_hangs_or_prints_for_ever_is_ended_and_said) {
  EXPECT_EQ(said_of("exec sleep 100000\n", 0.1), "rg:task: its Python has printed nothing for 0.1 s");
  EXPECT_EQ(said_of("setsid sleep 100000 &\nexit 3\n", 600), "rg:task: its Python ended with status 768");
  EXPECT_EQ(said_of("exec yes\n", 600), "rg:task: its Python prints more than 16 MiB");
}

struct Ended {
  std::string printed;
  int status = 0;
};

// To the end of its output, which comes when no process holds it any more.
Ended end_of(const std::string& script, int signal = 0) {
  int out[2];
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  const int pid = start_child({"/bin/sh", "-c", script}, {.out = out[1]}, "a child");
  ::close(out[1]);
  Ended ended;
  char part[256];
  for (ssize_t n; (n = ::read(out[0], part, sizeof part)) > 0;) {
    ended.printed.append(part, static_cast<size_t>(n));
    if (signal != 0 && ended.printed.ends_with('\n')) ::kill(pid, signal);
  }
  ::close(out[0]);
  ::waitpid(pid, &ended.status, 0);
  return ended;
}

// With a session of its own it is in no group that could be ended, and it holds the pipe.
TEST(python_child, ends_with_all_that_it_started) {
  constexpr const char* kLeaves = "setsid sleep 100000 & echo $!; ";
  const Ended exits = end_of(str(kLeaves, "exit 7"));
  EXPECT_EQ(WEXITSTATUS(exits.status), 7);
  const Ended dies = end_of(str(kLeaves, "kill -9 $$"));
  EXPECT_TRUE(WIFSIGNALED(dies.status) && WTERMSIG(dies.status) == SIGKILL);
  const Ended asked = end_of(str(kLeaves, "wait"), SIGTERM);
  EXPECT_TRUE(WIFSIGNALED(asked.status) && WTERMSIG(asked.status) == SIGTERM);
  const Ended deaf = end_of(str(kLeaves, "trap '' TERM; while :; do wait; done"), SIGTERM);
  EXPECT_TRUE(WIFSIGNALED(deaf.status));
  for (const Ended& ended : {exits, dies, asked, deaf}) {
    const int left = std::atoi(ended.printed.c_str());
    ASSERT_GT(left, 0);
    EXPECT_EQ(::kill(left, 0), -1) << "process " << left << " is still there";
  }
}

TEST(python_child, that_is_not_there_is_named) {
  try {
    start_child({"/nowhere/python", "-c", ""}, {}, "a child");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a child: /nowhere/python cannot be started: No such file"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ucas
