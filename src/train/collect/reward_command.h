// A reward from outside: one long-lived process that receives requests batch by batch, a JSON line for each response on
// its standard input, and replies with a JSON line for each on its standard output, in any order (docs/rewards.md). Any
// failure there (it ends, sends no reply for too long, replies otherwise) is Error(ErrorKind::reward, exit 74): the run
// stops, and no response is rewarded.
#pragma once

#include <cstdint>
#include <functional>
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
// One for each of `count`, in order of their ids. `name` names the program in errors.
std::vector<RewardReply> parse_rewards(const std::string& lines, size_t count, const std::string& name);

class RewardCommand {
 public:
  // `words` are its program and arguments, `name` what it is called in messages ("reward.command python3 r.py").
  // `seconds` without a byte from it, while it owes one, are too many; 0: any number.
  RewardCommand(const std::vector<std::string>& words, std::string name, double seconds, size_t longest = 1 << 20);
  ~RewardCommand();  // closes its input; after 2 s it is ended
  RewardCommand(const RewardCommand&) = delete;
  RewardCommand& operator=(const RewardCommand&) = delete;

  // `count` lines in, as many back. name_of: the request by id, for a watchdog that says which replies are owed.
  std::string ask(const std::string& lines, size_t count, const std::function<std::string(size_t)>& name_of = {});

 private:
  [[noreturn]] void fail(const std::string& what) const;
  std::string ending();  // how it ended, in words
  const std::string name_;
  const double seconds_;
  const size_t longest_;  // bytes of a reply
  int to_ = -1, from_ = -1;
  int pid_ = -1;
  std::string rest_;  // of a line that is not whole yet
};

}  // namespace ucas
