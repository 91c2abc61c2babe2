// Python as a child process: the scripts of python/ucas that are compiled in (reward, reasoning, advantage), by
// the interpreter that UCAS_PYTHON names, else python3. They need nothing of the package `ucas`.
#pragma once

#include <string>
#include <vector>

namespace ucas {

// {INTERPRETER, "-c", TEXT OF python/ucas/SCRIPT.py, ARGUMENTS..}
std::vector<std::string> python_words(const std::string& script, const std::vector<std::string>& arguments);

// Refuses what names no function of a script: FILE.py:FUNCTION, package.module:FUNCTION or package.module.FUNCTION, and
// a FILE.py that is not there. Error("python") naming `option`; "" is none. Starts nothing.
void check_python_function(const std::string& option, const std::string& place);

// Runs a script to its end; what it printed. Error("python") with the last line of its standard error where it fails:
// "WHAT: ...", if it prints nothing for `seconds`, prints too much, or this process is asked to stop.
std::string run_python(const std::string& script, const std::vector<std::string>& arguments, const std::string& what,
                       double seconds = 600);

// A program as a child in a group of its own, so that Ctrl-C is for this one. A descriptor below 0 stays what it is
// here. Returns its pid; Error("python") where it cannot be started. It ends with this process, and what it started
// ends with it, at once, so that its pipes do (verify/sandbox/launcher/keep.cpp; SIGTERM to the pid ends all).
struct ChildStreams {
  int in = -1, out = -1, error = -1;
};
int start_child(std::vector<std::string> words, const ChildStreams& streams, const std::string& what);

// Torch's C++ libraries, which the program of the wheel loads. No Python is started. A build from source has paths of
// its own and does not ask.

// The folder that holds libucas.so, and what is next to it: build/ or .../site-packages/ucas.
std::string own_folder();

// Where torch is installed: what UCAS_TORCH_DIR names (the `ucas` command sets it to what its Python would import),
// else the folder torch next to ours. "" where neither is there.
std::string torch_folder();

}  // namespace ucas
