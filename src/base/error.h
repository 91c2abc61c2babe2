// Errors that a user can cause or mend: thrown as ucas::Error, caught once in cli/main.cpp and printed as
//   ucas: error[class]: what, where, got, expected, do
// Programmer errors go through UCAS_CHECK (aborts with file:line). Expected outcomes are values, not errors.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ucas {

// Exit codes of the program (docs/formats.md).
enum ExitCode : int {
  kDone = 0,
  kDiffers = 1,
  kBadInput = 2,
  kNumeric = 70,
  kIoFailure = 74,
  kInterrupted = 75,
  kNoSandbox = 78
};

// The class of an error, printed in brackets: error[config].
// clang-format off
#define UCAS_ERROR_KINDS(X)                                                                            \
  X(config) X(usage) X(path) X(io) X(interrupted) X(numeric) X(limit) X(memory) X(internal)            \
  X(unsupported) X(data_line) X(empty) X(schema) X(utf8) X(dup_key) X(parquet) X(study) X(no_signal)   \
  X(truncated) X(header_json) X(header_size) X(not_regular_file) X(offset) X(shape) X(size) X(dtype)   \
  X(missing_tensor) X(unexpected_tensor) X(tokenizer) X(torch) X(device)                       \
  X(ranks) X(server) X(reward) X(sandbox) X(lfs_pointer) X(python)
// clang-format on
enum class ErrorKind {
#define UCAS_ENUMERATOR(name) name,
  UCAS_ERROR_KINDS(UCAS_ENUMERATOR)
#undef UCAS_ENUMERATOR
};
const char* word_of(ErrorKind kind);
// Of a word; what is none is `internal`.
ErrorKind error_kind_of(std::string_view word);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, int exit_code = kBadInput);
  ~Error() override;

  ErrorKind kind() const { return kind_; }
  std::string word() const { return word_of(kind_); }
  int exit_code() const { return exit_code_; }

 private:
  ErrorKind kind_;
  int exit_code_;
};

[[noreturn]] void check_failed(const char* condition, const char* message, const char* file, int line);

// What a failed UCAS_CHECK does where the code runs inside another program, whose process is not ours to
// end: the Python package. Without a handler it prints the place and aborts.
// Called with "FILE:LINE: message (condition)"; must throw. Set once, before any thread; nullptr: abort.
using OnFailedCheck = void (*)(const std::string& what);
void on_failed_check(OnFailedCheck handler);

// What is wrong with one input, collected, so that a user sees all of it at once and not one fault a try.

class Refusals {
 public:
  explicit Refusals(ErrorKind kind) : kind_(kind) {}

  void operator()(std::string what) { what_.push_back(std::move(what)); }
  // What `check` throws of this kind is one more; anything else goes on its way.
  template <class Check>
  void attempt(Check check) {
    try {
      check();
    } catch (const Error& error) {
      if (error.kind() != kind_) throw;
      what_.push_back(error.what());
    }
  }
  bool none() const { return what_.empty(); }
  // Error with a line for each, if there are any.
  void finish() const {
    if (what_.empty()) return;
    std::string text = what_[0];
    for (size_t i = 1; i < what_.size(); ++i) text += "\n" + what_[i];
    throw Error(kind_, text);
  }

 private:
  ErrorKind kind_;
  std::vector<std::string> what_;
};

}  // namespace ucas

// A condition that only a bug in ucas can break; never reachable from user input.
#define UCAS_CHECK(condition, message)                                               \
  do {                                                                               \
    if (!(condition)) ::ucas::check_failed(#condition, message, __FILE__, __LINE__); \
  } while (false)
