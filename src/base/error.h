// Errors that a user can cause or mend: thrown as ucas::Error, caught once in cli/main.cpp and printed as
//   ucas: error[class]: what, where, got, expected, do
// Programmer errors go through UCAS_CHECK (aborts with file:line). Expected outcomes are values, not errors.
#pragma once

#include <stdexcept>
#include <string>

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

class Error : public std::runtime_error {
 public:
  // `kind` is the class printed in brackets: config, path, io, truncated, header_json, utf8, dup_key, offset, shape,
  // dtype, limit, missing_tensor, unexpected_tensor, unsupported, tokenizer, data_line, empty, usage, numeric ...
  Error(std::string kind, const std::string& message, int exit_code = kBadInput);
  ~Error() override;

  const std::string& kind() const { return kind_; }
  int exit_code() const { return exit_code_; }

 private:
  std::string kind_;
  int exit_code_;
};

[[noreturn]] void check_failed(const char* condition, const char* message, const char* file, int line);

}  // namespace ucas

// A condition that only a bug in ucas can break; never reachable from user input.
#define UCAS_CHECK(condition, message)                                               \
  do {                                                                               \
    if (!(condition)) ::ucas::check_failed(#condition, message, __FILE__, __LINE__); \
  } while (false)
