#include "base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/str.h"

namespace ucas {

namespace {

OnFailedCheck failed_check_handler = nullptr;

#define UCAS_WORD(name) #name,
constexpr const char* kWords[] = {UCAS_ERROR_KINDS(UCAS_WORD)};
#undef UCAS_WORD

}  // namespace

const char* word_of(ErrorKind kind) { return kWords[static_cast<size_t>(kind)]; }

ErrorKind error_kind_of(std::string_view word) {
  const auto* found = std::ranges::find(kWords, word);
  return found == std::end(kWords) ? ErrorKind::internal : static_cast<ErrorKind>(found - kWords);
}

Error::Error(ErrorKind kind, const std::string& message, int exit_code)
    : std::runtime_error(message), kind_(kind), exit_code_(exit_code) {}

Error::~Error() = default;

void on_failed_check(OnFailedCheck handler) { failed_check_handler = handler; }

void check_failed(const char* condition, const char* message, const char* file, int line) {
  if (failed_check_handler != nullptr) failed_check_handler(str(file, ":", line, ": ", message, " (", condition, ")"));
  std::fprintf(stderr, "ucas: bug: %s:%d: %s (%s)\n", file, line, message, condition);
  std::abort();
}

}  // namespace ucas
