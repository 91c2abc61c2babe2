// A reward from outside: a LineChild that receives a JSON line for each response and replies with one for each, in any
// order (docs/rewards.md). Any failure there (it ends, sends no reply for too long, replies otherwise) is
// Error(ErrorKind::reward, exit 74): the run stops, and no response is rewarded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict.h"

namespace ucas {

struct RewardAsk {
  const Problem& problem;
  std::string_view response;
  int64_t tokens;
  bool finished;           // ended by a stop token
  const Verdict& verdict;  // of the verifier; unparseable where the problem has no right answer
  const std::string* row;  // of the data, as JSON; nullptr: neither row nor ids are sent
  std::span<const int32_t> ids;
};

struct RewardReply {
  double score = 0;
  bool none = false;          // null: no score, the response is left out of its group
  std::optional<bool> right;  // instead of the verifier's verdict
  std::string reason;
};

// A line for each.
std::string reward_lines(const std::vector<RewardAsk>& asks);
// What follows, for messages, where none were assigned: "rewards", "advantages".
std::string after_failure(const std::string& values);
// One for each of `count`, in order of their ids. `name` names the program in errors.
std::vector<RewardReply> parse_rewards(const std::string& lines, size_t count, const std::string& name);

}  // namespace ucas
