#include "base/process/line_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/process/activity.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr double kPatience = 20;  // seconds without a first reply, after which a warning is logged

// The first few ids that no reply has named yet.
std::string owed(const std::string& replies, size_t count, const std::function<std::string(size_t)>& name_of) {
  constexpr size_t kNamed = 3;
  std::vector<bool> answered(count);
  for (size_t at = 0, end; (end = replies.find('\n', at)) != std::string::npos; at = end + 1) {
    try {
      const JsonObject row = JsonObject::parse(std::string_view(replies).substr(at, end - at), "reply");
      answered[static_cast<size_t>(row.whole("id", 0, static_cast<int64_t>(count) - 1))] = true;
    } catch (const Error&) {  // refused when all are there
    }
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < count && names.size() < kNamed; ++i) {
    if (!answered[i]) names.push_back(name_of ? name_of(i) : str("id ", i));
  }
  return join(names, ", ");
}

}  // namespace

LineChild::LineChild(const std::vector<std::string>& words, LineChildOptions options) : options_(std::move(options)) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) fail(str("no pipe: ", std::strerror(errno)));
  if (::pipe2(out, O_CLOEXEC) != 0) fail(str("no pipe: ", std::strerror(errno)));
  std::string refusal;
  try {
    pid_ = start_child(words, {.in = in[0], .out = out[1]}, options_.name);
  } catch (const Error& error) {
    refusal = error.what();
  }
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (!refusal.empty()) throw Error(options_.kind, refusal, options_.exit_code);
  for (int end : {to_, from_}) ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK);
}

LineChild::~LineChild() {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  if (pid_ < 0) return;
  for (int tenths = 0; tenths < 60; ++tenths) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
    if (tenths == 20) ::kill(pid_, SIGTERM);
    ::usleep(100000);
  }
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void LineChild::fail(const std::string& what) const {
  throw Error(options_.kind, str(options_.name, ": ", what, options_.consequence), options_.exit_code);
}

std::string LineChild::ending() {
  int status = 0;
  for (int tenths = 0; tenths < 20; ++tenths) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      if (WIFSIGNALED(status)) return str("ended by signal ", WTERMSIG(status));
      return str("ended with exit code ", WEXITSTATUS(status));
    }
    ::usleep(100000);
  }
  return "closed its output";
}

std::string LineChild::ask(const std::string& lines, size_t count, const std::function<std::string(size_t)>& name_of) {
  Doing doing(str("waiting for ", options_.name));
  std::string replies = std::move(rest_);
  rest_.clear();
  size_t sent = 0, end = 0;  // end: of the last whole line that was requested
  size_t got = 0;
  const auto take_lines = [&] {
    for (size_t next = 0; got < count && (next = replies.find('\n', end)) != std::string::npos; ++got) end = next + 1;
  };
  take_lines();
  if (got > 0 || !replies.empty()) fail("wrote a line without a request");
  double last_reply = now_seconds(), warned_of = -1;  // warned_of: the last reply of which a warning was given
  bool warned = false;
  while (got < count) {
    pollfd ends[2] = {{from_, POLLIN, 0}, {sent < lines.size() ? to_ : -1, POLLOUT, 0}};
    if (::poll(ends, 2, 250) < 0 && errno != EINTR) fail(str("poll: ", std::strerror(errno)));
    if (now_seconds() - last_reply > 0.2 && warned_of != last_reply) {
      warned_of = last_reply;
      doing.say(str("waiting for ", options_.name, ": ", got, " of ", count,
                    " replies, the first without one: ", owed(replies, count, name_of)));
    }
    const bool of_the_user = !options_.seconds_option.empty();
    if (of_the_user && now_seconds() - last_reply > kPatience && got == 0 && sent == lines.size() &&
        !std::exchange(warned, true)) {
      warn(str(options_.name, ": it received ", count, " requests and has sent no reply for ", kPatience, " s",
               options_.advice));
    }
    if ((ends[1].revents & (POLLOUT | POLLERR)) != 0) {
      const ssize_t n = ::write(to_, lines.data() + sent, lines.size() - sent);
      if (n > 0) {
        sent += static_cast<size_t>(n);
        last_reply = now_seconds();
      } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail(str(ending(), " before it had read its requests"));
      }
    }
    if ((ends[0].revents & (POLLIN | POLLHUP)) != 0) {
      char part[65536];
      const ssize_t n = ::read(from_, part, sizeof part);
      if (n == 0) fail(str(ending(), " after ", got, " of ", count, " replies"));
      if (n > 0) {
        replies.append(part, static_cast<size_t>(n));
        last_reply = now_seconds();
        progressed();
        take_lines();
        if (replies.size() - end > options_.longest && got < count)
          fail(str("a reply of more than ", options_.longest >> 20, " MiB without a line's end"));
      }
    }
    if (options_.seconds > 0 && now_seconds() - last_reply > options_.seconds) {
      const bool waits = got == 0 && sent == lines.size();
      fail(str("no reply for more than ", options_.seconds_option, " = ", options_.seconds, " s after ", got, " of ",
               count, " replies", waits ? options_.advice : ""));
    }
  }
  rest_ = replies.substr(end);
  replies.resize(end);
  return replies;
}

}  // namespace ucas
