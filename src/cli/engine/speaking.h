// Of several ranks rank 0 speaks for all. What ends all of them alike it says, too; what ends another one alone, or is
// of its machine alone (warn_here), is said by that one, with its number.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "sharding/ranks.h"

namespace ucas {

inline std::string as_said_by(int64_t rank, const std::string& message) {
  const std::string who = str("rank ", rank);
  std::vector<std::string> lines;
  for (const std::string& line : split(message, '\n')) {
    lines.push_back(line.starts_with(who) ? line : str(who, ": ", line));
  }
  return join(lines, "\n");
}

// What a rank that does not speak says all the same: what its own machine alone has to say.
inline LogSink muted(LogSink before, int64_t rank) {
  return [before = std::move(before), rank](LogLevel level, const std::string& line) {
    if (level == LogLevel::own) before(level, as_said_by(rank, line));
  };
}

// Opens the ranks and gives them to `work`.
template <class Work>
int speaking_once(Work work) {
  const int64_t rank = rank_of_environment();
  LogSink before;
  std::shared_ptr<Ranks> ranks;
  const auto mute = [&] {
    if (rank == 0) return;
    const LogSink now = set_log_sink(nullptr);
    if (!before) before = now;
    set_log_sink(muted(before, rank));
  };
  try {
    ranks = open_ranks();
    mute();
    return work(ranks);
  } catch (const AgreedError&) {
    mute();
    throw;
  } catch (const Error& error) {
    if (ranks && error.kind() != ErrorKind::ranks) ranks->publish_failure(error.what());
    if (rank == 0) throw;
    set_log_sink(before);
    throw Error(error.kind(), as_said_by(rank, error.what()), error.exit_code());
  } catch (const std::exception& error) {
    if (ranks) ranks->publish_failure(error.what());
    if (rank == 0) throw;
    set_log_sink([before, rank](LogLevel level, const std::string& line) { before(level, as_said_by(rank, line)); });
    throw;
  }
}

}  // namespace ucas
