// Attacks on the sandbox, each the same program with and without it: what a sandbox is worth is what fails in it that
// works outside. Tried before the first program of a model runs, and by `ucas doctor --sandbox`.
#pragma once

#include <string>
#include <vector>

namespace ucas::code {

class Sandbox;

struct Attack {
  enum class Result { missed, hit, failed };  // failed: it could not be tried at all, and `name` says why
  std::string name;
  Result sandboxed = Result::failed, bare = Result::missed;
  bool must_hit_bare = false;  // else a container may forbid it already
};

// All attacks, in the tier of `sandbox`. Two runs of the interpreter.
std::vector<Attack> attack_all(const Sandbox& sandbox);

// The launcher for `what`, which starts processes in there (--forks): of tier a, or Error(ErrorKind::sandbox).
std::string launcher_of_forks(const Sandbox& sandbox, const std::string& what);

}  // namespace ucas::code
