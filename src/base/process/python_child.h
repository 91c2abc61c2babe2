// Python beside the program: the scripts of python/ucas that are compiled in (reward, reasoning, advantage, track), by
// the interpreter that UCAS_PYTHON names, else python3. They need nothing of the package `ucas`.
#pragma once

#include <string>
#include <vector>

namespace ucas {

// {INTERPRETER, "-c", TEXT OF python/ucas/SCRIPT.py, ARGUMENTS..}
std::vector<std::string> python_words(const std::string& script, const std::vector<std::string>& arguments);

// Runs a script to its end; what it printed. Error("python") with the last line of its standard error where it fails:
// "WHAT: ...".
std::string run_python(const std::string& script, const std::vector<std::string>& arguments, const std::string& what);

// A program as a child in a group of its own, so that Ctrl-C is for this one. A descriptor below 0 stays what it is
// here. Returns its pid; Error("python") where it cannot be started.
struct ChildStreams {
  int in = -1, out = -1, error = -1;
};
int start_child(const std::vector<std::string>& words, const ChildStreams& streams, const std::string& what);

}  // namespace ucas
