#include "train/collect/reward_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr double kPatience = 20;  // seconds without a first reply, after which a warning is logged
constexpr const char* kWaitsForEnd =
    "; does it wait for the end of its input? That stays open from step to step: read line by line (for line in "
    "sys.stdin), answer each line or batch at once, and flush (print(.., flush=True))";

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

// What people do who write such a line.
std::string hint_of(const std::string& line) {
  const std::string_view text = trim(line);
  if (text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos) {
    return "; NaN and infinities are no scores: give 0, or end the program to stop the run";
  }
  if (!text.starts_with("{")) return "; standard output is for replies alone: print everything else to standard error";
  return "";
}

}  // namespace

std::string reward_lines(const std::vector<RewardAsk>& asks) {
  std::string lines;
  for (size_t i = 0; i < asks.size(); ++i) {
    const RewardAsk& ask = asks[i];
    const OrderedJson row = {{"id", i},
                             {"batch", asks.size()},
                             {"problem", ask.problem.id},
                             {"source", ask.problem.source},
                             {"prompt", ask.problem.text},
                             {"answer", ask.problem.gold},
                             {"response", ask.response},
                             {"tokens", ask.tokens},
                             {"finished", ask.finished},
                             {"verdict", name_of(ask.verdict.kind)}};
    lines += json_text(row);
    if (ask.row != nullptr) {
      std::string ids;
      for (int32_t id : ask.ids) ids += str(ids.empty() ? "" : ",", id);
      lines.replace(lines.size() - 1, 1, str(",\"ids\":[", ids, "],\"row\":", *ask.row, "}"));
    }
    lines += "\n";
  }
  return lines;
}

std::vector<RewardReply> parse_rewards(const std::string& lines, size_t count, const std::string& name) {
  std::vector<std::optional<RewardReply>> replies(count);
  size_t at = 0;
  for (size_t number = 1; number <= count; ++number) {
    const size_t end = lines.find('\n', at);
    UCAS_CHECK(end != std::string::npos, "the workers must return one line per request");
    const std::string where = str(name, ": reply ", number);
    try {
      const JsonObject row = JsonObject::parse(std::string_view(lines).substr(at, end - at), where);
      const int64_t id = row.whole("id", 0, static_cast<int64_t>(count) - 1);
      std::optional<RewardReply>& reply = replies[static_cast<size_t>(id)];
      if (reply) row.refuse(str("\"id\": ", id, " was answered before"));
      const bool none = !row.has("score") && std::ranges::count(row.keys(), "score") > 0;  // null
      reply = RewardReply{
          .score = none ? 0 : row.number("score"), .none = none, .right = {}, .reason = row.text_or("reason", "")};
      if (!std::isfinite(reply->score)) row.refuse("score", "a finite number");
      if (row.has("right")) reply->right = row.truth("right");
    } catch (const Error& error) {
      const std::string line = lines.substr(at, end - at);
      throw Error(ErrorKind::reward,
                  str(error.what(), "; it wrote \"", printable(line, 80),
                      "\", expected {\"id\": N, \"score\": X} with a finite X for each request", hint_of(line)),
                  kIoFailure);
    }
    at = end + 1;
  }
  std::vector<RewardReply> all;
  for (std::optional<RewardReply>& reply : replies) all.push_back(std::move(*reply));
  return all;
}

RewardCommand::RewardCommand(const std::vector<std::string>& words, std::string name, double seconds, size_t longest)
    : name_(std::move(name)), seconds_(seconds), longest_(longest) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) fail(str("no pipe: ", std::strerror(errno)));
  if (::pipe2(out, O_CLOEXEC) != 0) fail(str("no pipe: ", std::strerror(errno)));
  std::string refusal;
  try {
    pid_ = start_child(words, {.in = in[0], .out = out[1]}, name_);
  } catch (const Error& error) {
    refusal = error.what();
  }
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (!refusal.empty()) throw Error(ErrorKind::reward, refusal, kIoFailure);
  for (int end : {to_, from_}) ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK);
}

RewardCommand::~RewardCommand() {
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

void RewardCommand::fail(const std::string& what) const {
  throw Error(ErrorKind::reward,
              str(name_, ": ", what, "; no ", name_.starts_with("method") ? "advantages" : "rewards",
                  " were assigned; resume from the last checkpoint, if there is one"),
              kIoFailure);
}

std::string RewardCommand::ending() {
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

std::string RewardCommand::ask(const std::string& lines, size_t count,
                               const std::function<std::string(size_t)>& name_of) {
  Doing doing(str("waiting for ", name_));
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
      doing.say(str("waiting for ", name_, ": ", got, " of ", count,
                    " replies, the first without one: ", owed(replies, count, name_of)));
    }
    if (now_seconds() - last_reply > kPatience && got == 0 && sent == lines.size() && !std::exchange(warned, true)) {
      warn(str(name_, ": it received ", count, " requests and has sent no reply for ", kPatience, " s", kWaitsForEnd));
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
        if (replies.size() - end > longest_ && got < count)
          fail(str("a reply of more than ", longest_ >> 20, " MiB without a line's end"));
      }
    }
    if (seconds_ > 0 && now_seconds() - last_reply > seconds_) {
      const bool waits = got == 0 && sent == lines.size();
      fail(str("no reply for more than reward.command_seconds = ", seconds_, " s after ", got, " of ", count,
               " replies", waits ? kWaitsForEnd : ""));
    }
  }
  rest_ = replies.substr(end);
  replies.resize(end);
  return replies;
}

}  // namespace ucas
