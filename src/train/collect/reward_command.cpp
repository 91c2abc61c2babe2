#include "train/collect/reward_command.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

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

std::string after_failure(const std::string& values) {
  return str("; no ", values, " were assigned; resume from the last checkpoint, if there is one");
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

}  // namespace ucas
