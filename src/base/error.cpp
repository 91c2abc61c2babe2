#include "base/error.h"

#include <cstdio>
#include <cstdlib>

#include "base/failed_check.h"
#include "base/str.h"

namespace ucas {

namespace {

OnFailedCheck failed_check_handler = nullptr;

}  // namespace

Error::Error(std::string kind, const std::string& message, int exit_code)
    : std::runtime_error(message), kind_(std::move(kind)), exit_code_(exit_code) {}

Error::~Error() = default;

void on_failed_check(OnFailedCheck handler) { failed_check_handler = handler; }

void check_failed(const char* condition, const char* message, const char* file, int line) {
  if (failed_check_handler != nullptr) failed_check_handler(str(file, ":", line, ": ", message, " (", condition, ")"));
  std::fprintf(stderr, "ucas: bug: %s:%d: %s (%s)\n", file, line, message, condition);
  std::abort();
}

}  // namespace ucas
