// A program as a child that answers lines: one long-lived process that receives requests batch by batch, a line each,
// on its standard input, and replies with as many lines on its standard output.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ucas {

struct LineChildOptions {
  std::string name;            // what it is called in messages ("reward.command python3 r.py")
  double seconds = 0;          // without a byte from it, while it owes one, are too many; 0: any number
  std::string seconds_option;  // sets them, for messages
  ErrorKind kind;              // of its failures: it ends, sends no reply for too long
  int exit_code = kIoFailure;
  std::string advice = "";       // follows where no reply at all came
  std::string consequence = "";  // follows what failed, as "; no rewards were assigned"
  size_t longest = 1 << 20;      // bytes of a reply
};

// Threads: one at a time.
class LineChild {
 public:
  // `words` are its program and arguments.
  LineChild(const std::vector<std::string>& words, LineChildOptions options);
  ~LineChild();  // closes its input; after 2 s it is ended
  LineChild(const LineChild&) = delete;
  LineChild& operator=(const LineChild&) = delete;

  // `count` lines in, as many back. name_of: the request by id, for a watchdog that says which replies are owed.
  std::string ask(const std::string& lines, size_t count, const std::function<std::string(size_t)>& name_of = {});

 private:
  [[noreturn]] void fail(const std::string& what) const;
  std::string ending();  // how it ended, in words
  const LineChildOptions options_;
  int to_ = -1, from_ = -1;
  int pid_ = -1;
  std::string rest_;  // of a line that is not whole yet
};

}  // namespace ucas
