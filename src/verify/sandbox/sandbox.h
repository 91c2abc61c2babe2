// Runs what a model wrote, in a sandbox (docs/reliability.md has its layers). Fed by code_grader.cpp; owns nothing but
// what it found out at its start: the interpreter, the tier this machine allows, and that the attacks fail.
// Each run is a fresh process of ucas-sandbox (launcher/), which is spawned, never forked, from this one.
// Threads: run() may be called from any number of them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/fields.h"

namespace ucas::code {

// automatic: tier a, else b, else refuse | a: namespaces and all below | b: Landlock, seccomp, limits | none: nothing
enum class SandboxChoice { automatic, a, b, none };
constexpr std::array<const char*, 4> names(SandboxChoice) { return {"auto", "a", "b", "none"}; }

struct CodeOptions {
  std::string python;  // "" = found
  SandboxChoice sandbox = SandboxChoice::automatic;
  int64_t wall_seconds = 10;
  int64_t cpu_seconds = 0, memory_mib = 1024;  // no options; 0 = cpu() of it
  int64_t cpu() const { return cpu_seconds > 0 ? cpu_seconds : (4 * wall_seconds + 4) / 5; }  // over all tests
  void fields(Fields& f);
};

struct Frame {    // what harness.py said
  char kind = 0;  // r ready, c the solution cannot be loaded, v a value, o an output, e an error, d done
  int64_t number = 0;
  std::string_view payload;
};

struct Ended {
  enum class How {
    done,         // by itself
    killed,       // by a signal: memory, CPU time, a fault of its own
    out_of_time,  // wall
    too_much,     // more results than allowed
    stopped,      // `take` said so
    failed        // the sandbox's fault, not the program's: a layer, the launcher, the interpreter
  };
  How how = How::failed;
  int code = 0;        // of done and killed
  std::string reason;  // of failed
  double seconds = 0;
};

class Sandbox {
 public:
  // Finds interpreter and tier and tries the attacks. Error(ErrorKind::sandbox) with exit code 78 where that cannot be
  // had.
  explicit Sandbox(const CodeOptions& options);

  // `task` goes to the harness; `take` gets each frame and may return false to end the run. `results`: bytes it may
  // send.
  Ended run(const std::string& task, int64_t results, const std::function<bool(const Frame&)>& take) const;

  // The same, tried three times where the sandbox fails and not the program, each time after `begin`. Then
  // Error(ErrorKind::sandbox): nothing can be said of the program.
  Ended insist(const std::string& task, int64_t results, const std::function<void()>& begin,
               const std::function<bool(const Frame&)>& take) const;

  SandboxChoice tier() const { return tier_; }  // a, b or none
  const std::string& python() const { return python_; }
  const std::string& python_version() const { return version_; }
  // Why a better tier is not used; "" where it is.
  const std::string& why() const { return why_; }
  const CodeOptions& options() const { return options_; }
  // The same without the self-test, for the test itself, its controls and `ucas doctor`.
  static Sandbox untried(const CodeOptions& options, SandboxChoice tier);
  // As on a kernel whose Landlock has this version (1 is Linux 5.13, 3 is 6.2, 6 is 6.12), for tests.
  void use_landlock(int64_t version) { landlock_ = version; }

 private:
  Sandbox() = default;
  void find_python();
  bool works(std::string& why);  // in tier_

  CodeOptions options_;
  SandboxChoice tier_ = SandboxChoice::a;
  int64_t landlock_ = 0;  // 0 = the kernel's
  std::string launcher_, python_, version_, why_, harness_;
  std::vector<std::string> read_only_;  // what the interpreter needs
};

// A task for harness.py: "input" (steps are what a program reads) or "steps" ('x' + statement, 't' + expression).
std::string make_task(std::string_view mode, std::string_view source, const std::vector<std::string>& steps);

// Attacks on the sandbox, each the same program with and without it: what a sandbox is worth is what fails in it that
// works outside. Tried before the first program of a model runs, and by `ucas doctor --sandbox`.

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

// Values of Python as text: numbers, texts, lists, dicts. What a solution gave (harness.py writes it) and what a test
// expects are read by the same parser and compared here, outside the sandbox.

struct Value {
  enum class Kind { none, boolean, integer, real, text, bytes, list, tuple, set, dict };
  Kind kind = Kind::none;
  std::string text;          // of text and bytes: its bytes (UTF-8); of an integer: "-12", without zeros in front
  double real = 0;           // of a real; 1 or 0 of a boolean
  std::vector<Value> items;  // of a dict: key, value, key, value ..
};

constexpr size_t kValueDepth = 100, kIntegerDigits = 50000;

// A whole text that is one literal, blanks around it; nullopt for anything else: a name, a call, an operator. Linear.
std::optional<Value> parse_value(std::string_view text);
// As Python's ==: 1 == 1.0 == True, a list is no tuple, sets and dicts without an order.
bool equal(const Value& a, const Value& b);
// Are two decimal numbers ("1e3", "1000.0", "-.5") the same? false where one is none.
bool same_decimal(std::string_view a, std::string_view b);
// A JSON text as a literal of Python: true -> True. nullopt: not JSON.
std::optional<std::string> literal_of_json(std::string_view json);

}  // namespace ucas::code
