// R_i of the responses to a generation batch: the verdict of the grader of their data source, the parts of the score
// (objective/advantage/reward_terms.h), the overlong penalty. Fed by train/collect; owns nothing but what was graded
// ahead. Of several ranks each grades some of the responses (sharding/shared_grading.h); the leader alone asks
// reward.command, and tells.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/batch.h"
#include "core/problem.h"
#include "objective/advantage/reward_terms.h"
#include "sharding/ranks.h"
#include "text/split/regex.h"
#include "train/collect/early_grading.h"
#include "train/collect/reward_command.h"
#include "verify/registry.h"

namespace ucas {

// The responses to one prompt; length, finished and sample are set.
struct PaidGroup {
  const Problem& problem;
  std::span<const std::string> text;               // [G]
  std::span<Response> response;                    // [G] gets verdict, terms, score, reward
  std::vector<std::span<const int32_t>> ids = {};  // [G], or none where they are not at hand
};

class Rewards {
 public:
  // Borrows all. `command`: of the leader, where reward.command is given. Error(ErrorKind::config) for a pattern that
  // is none.
  Rewards(const TrainConfig& config, const Graders& graders, Ranks& ranks, RewardCommand* command);
  ~Rewards();

  const std::vector<RewardTerm>& terms() const { return terms_; }
  // Whether every problem has a verdict, even one without a right answer.
  bool judges_all() const { return config_.reward.from_outside(); }
  // A response ended and more are being sampled: its text, which another thread asks for, is graded meanwhile. `key`
  // tells it from all others until pay(), which forgets all that was begun. Of several ranks only that which sampled
  // it calls.
  using Key = EarlyGrading::Key;
  void begin(const Problem& problem, const Key& key, EarlyGrading::Text text);
  // What became of it, waiting for it; nullptr: it was not begun on this rank.
  const GradedEarly* begun(const Key& key) const { return early_.find(key); }
  bool is_graded(const Key& key) const { return early_.graded(key); }  // of what was begun: begun() would not wait
  bool is_slow(const Problem& problem) const { return graders_.for_source(problem.source).is_slow(); }
  // Scores and rewards of one group with verdicts, where no program scores (RewardConfig::from_outside).
  void score(const PaidGroup& group) const { pay_group(group, {}); }
  Ranks& ranks() const { return ranks_; }
  // keys: [sum of G], in order of the groups; empty where nothing was begun. All ranks call, with the same responses.
  void pay(std::span<const PaidGroup> groups, std::span<const Key> keys = {});

 private:
  void grade(std::span<const PaidGroup> groups, std::span<const Key> keys);
  std::vector<RewardReply> ask(std::span<const PaidGroup> groups) const;
  void pay_group(const PaidGroup& group, std::span<const RewardReply> replies) const;
  double part(RewardPart part, const Response& o, const std::string& text, const RewardReply* reply) const;
  std::vector<int64_t> graded_by_who_began(std::span<const GradedEarly* const> begun) const;

  const TrainConfig& config_;
  const Graders& graders_;
  Ranks& ranks_;
  RewardCommand* command_;
  std::vector<WeightedPart> parts_;
  std::vector<RewardTerm> terms_;
  std::optional<Regex> format_;
  EarlyGrading early_;
};

}  // namespace ucas
