#include "base/terminal/log.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/str.h"

namespace ucas {
namespace {

TEST(log, a_message_cannot_command_the_terminal_whatever_it_quotes) {
  std::string logged;
  LogSink before = set_log_sink([&](LogLevel level, const std::string& message) {
    logged += str(level == LogLevel::warning ? "! " : "", message, "|");
  });
  log("\n[1/2] a file named \x1b[2J\x07");
  warn(
      "an id of \xc2\x9b"
      "31m and \xff");
  set_log_sink(std::move(before));
  EXPECT_EQ(logged, "\n[1/2] a file named \\x1b[2J\\x07|! an id of \\xc2\\x9b31m and \\xff|");
}

}  // namespace
}  // namespace ucas
