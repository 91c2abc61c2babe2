// The one place where errors become text and exit codes. Links libucas only, so that --help starts in milliseconds.
#include <csignal>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"

namespace {

constexpr int kInternal = 70;  // EX_SOFTWARE

// One error, one line; several of one input (Refusals), a line each.
int fail(const std::string& kind, const std::string& message, int exit_code) {
  for (const std::string& line : ucas::split(message, '\n')) ucas::log(ucas::str("ucas: error[", kind, "]: ", line));
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  ucas::open_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that left must not end a run
  std::signal(SIGXFSZ, SIG_IGN);  // nor a limit on the size of files: the write fails, with exit 74
  try {
    int code = ucas::run_program(ucas::Words(argv + 1, argv + argc));
    ucas::finish_output();
    return code;
  } catch (const ucas::Error& error) {
    return fail(error.word(), error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return fail(word_of(ucas::ErrorKind::memory),
                "out of memory: try fewer slots, a smaller token budget or a smaller model", kInternal);
  } catch (const std::exception& error) {
    return fail(word_of(ucas::ErrorKind::internal),
                ucas::str(error.what(), " (a bug in ucas; please report it with the command)"), kInternal);
  }
}
