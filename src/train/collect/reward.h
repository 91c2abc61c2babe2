// R_i of the responses to a generation batch: the verdict of the grader of their data source, the parts of the score
// (objective/advantage/reward_terms.h), the overlong penalty. Fed by train/collect. Of several ranks each grades some
// of the responses (sharding/agreement.h); the leader alone calls reward.command, and broadcasts the replies.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process/line_child.h"
#include "config/train_config.h"
#include "core/batch.h"
#include "core/verdict.h"
#include "objective/advantage/reward_terms.h"
#include "sharding/ranks.h"
#include "text/split/splitter.h"
#include "train/collect/reward_command.h"
#include "verify/registry.h"

namespace ucas {

// The responses to one prompt; length, finished and sample are set.
struct GroupToScore {
  const Problem& problem;
  std::span<const std::string> text;               // [G]
  std::span<Response> response;                    // [G] gets verdict, terms, score, reward
  std::vector<std::span<const int32_t>> ids = {};  // [G], or none where they are not at hand
  const std::string* row = nullptr;                // of the data, where the reward receives it
};

class Rewards {
 public:
  // Borrows all. `command`: of the leader, where reward.command is given. Error(ErrorKind::config) for a pattern that
  // is none.
  Rewards(const TrainConfig& config, const Graders& graders, Ranks& ranks, LineChild* command);

  const std::vector<RewardTerm>& terms() const { return terms_; }
  // Whether every problem has a verdict, even one without a right answer.
  bool judges_all() const { return config_.reward.from_outside(); }
  // All ranks call, with the same responses.
  void score(std::span<const GroupToScore> groups);

 private:
  void grade(std::span<const GroupToScore> groups);
  std::vector<RewardReply> ask(std::span<const GroupToScore> groups) const;
  void score_group(const GroupToScore& group, std::span<const RewardReply> replies) const;
  double part(RewardPart part, const Response& o, const std::string& text, const RewardReply* reply) const;

  const TrainConfig& config_;
  const Graders& graders_;
  Ranks& ranks_;
  LineChild* command_;
  std::vector<WeightedPart> parts_;
  std::vector<RewardTerm> terms_;
  std::optional<Regex> format_;
};

}  // namespace ucas
