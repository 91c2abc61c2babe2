// Another program, by its arguments and without a shell: blanks and quotes in them are blanks and quotes.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace ucas::testing {

// Its exit code, or 128 and the signal that ended it; 127: it is not there. Its standard output goes to `out`, "" for
// ours.
inline int run_program(const std::vector<std::string>& words, const std::string& out = "") {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    if (!out.empty()) {
      const int file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0) ::_exit(126);
    }
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 126;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace ucas::testing
