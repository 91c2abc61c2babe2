#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace ucas {

Error::Error(std::string kind, const std::string& message, int exit_code)
    : std::runtime_error(message), kind_(std::move(kind)), exit_code_(exit_code) {}

Error::~Error() = default;

void check_failed(const char* condition, const char* message, const char* file, int line) {
  std::fprintf(stderr, "ucas: bug: %s:%d: %s (%s)\n", file, line, message, condition);
  std::abort();
}

}  // namespace ucas
