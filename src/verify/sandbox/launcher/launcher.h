// ucas-sandbox: starts one program that a model wrote, in a sandbox, and says how it ended. A process of its own, so
// that nothing is ever forked from a process that holds a GPU or threads; small and static, so that it starts in a
// millisecond. It reads no file and follows no name that the sandboxed program made: results leave on a pipe alone.
//
//   ucas-sandbox --tier a|b|none --parent PID --wall MS --cpu S --memory BYTES [--landlock VERSION] [--ro PATH]..
//                [--forks 1] -- PROGRAM ARG..
//   ucas-sandbox --keep PARENT -- PROGRAM ARG..    no sandbox: keep.cpp
//
// Descriptors it is given: kTask and kResult go on to the program as they are; on kStatus it writes one line:
//   setup LAYER ERRNO     a layer could not be put up; the program was not started
//   end exit CODE | end signal N | end wall 0
// The program cannot reach kStatus, so that it cannot make up how it ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ucas::sandbox {

constexpr int kTask = 3, kResult = 4, kStatus = 5;
constexpr int kLauncherFailed = 71;  // the exit code where a layer could not be put up; kStatus says which

enum class Tier { none, b, a };

struct Plan {
  Tier tier = Tier::a;
  pid_t parent = 0;   // who starts the launcher: it ends with that process
  long landlock = 0;  // as a kernel of this version of Landlock would do it; 0 = of the one that runs
  int64_t wall_ms = 10000, cpu_seconds = 8, memory = int64_t{1} << 30;
  bool forks = false;                  // the program may start processes and end them; of tier a
  std::vector<std::string> read_only;  // files and folders that the program may read and execute
  std::vector<std::string> sources;    // where these lie, by stage_for_all(); none: where they are named
  std::vector<char*> argv;             // of the program, nullptr at its end
};

// What follows ends the process where it fails: a line on kStatus, then exit(kLauncherFailed).
[[noreturn]] void fail(const char* layer, int error);

void stage_for_all(Plan& plan);               // what root alone can reach, as a home folder of its
void become_unprivileged(const Plan& plan);   // root gives up its user and groups
void enter_namespaces(uid_t uid, gid_t gid);  // in the child of clone(): maps the user, names the host
void build_root(const Plan& plan);  // a fresh root with the read-only paths, three devices and a scratch folder
void limit_resources(const Plan& plan);
void restrict_files(const Plan& plan);  // Landlock
void filter_calls(const Plan& plan);    // seccomp; the last layer

[[noreturn]] void keep(pid_t parent, char** argv);

}  // namespace ucas::sandbox
