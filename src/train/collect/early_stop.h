// rollout.stop_early: which groups of a generation batch its step may still train on, while they are sampled. Groups
// count in the order of their problems, never in that in which they end: once `wanted` groups among the first M are
// certain to pass the rule, no later one is trained on, whatever becomes of those before. So what is trained on is what
// a run without early stopping trains on; when later groups are aborted changes no bit on the CPU. Fed by the episodes
// of one RolloutRequest; asked by its limits. Of several ranks each notes its own groups, and reads on the ranks' store
// which others pass.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/batch.h"
#include "core/problem.h"
#include "rollout/rollouter.h"
#include "sharding/ranks.h"
#include "train/collect/reward.h"

namespace ucas {

class EarlyStop {
 public:
  struct Prompt {
    const Problem& problem;
    int64_t number;  // the first half of its responses' keys (Rewards::Key)
  };

  // Borrows all. `wanted`: groups that the step still needs, at least one. All ranks call, with the same prompts.
  EarlyStop(const TrainConfig& config, Rewards& rewards, Ranks& ranks, std::vector<Prompt> prompts, int64_t wanted);

  // An episode of this rank, begun by Rewards::begin(); what was aborted.
  void ended(const Episode& episode);
  void aborted(const Episode& episode) { sampled_tokens_ += std::ssize(episode.token); }

  // Once per decode step: prompts before this one are needed. It may fall from call to call, and never rises. Exact
  // graders: reads the verdicts of what ended before the last call, waiting for them, so that it falls at the same
  // decode step in each run. Graders that take a process: those that are there.
  int64_t needed();

  int64_t sampled_tokens_of_ranks() const;  // aborted responses included; a collective

 private:
  struct Sampled {
    std::vector<Response> response;
    std::vector<std::string> text;
    bool right = false, wrong = false;  // some response is
    bool certain = false;               // to pass
  };
  struct Ended {
    int64_t prompt;
    Response response;
    Rewards::Key key;
  };
  bool is_due(const Ended& ended) const;
  void read(Ended ended);
  bool passes_for_certain(Sampled& group, const Problem& problem) const;
  void tell(int64_t prompt);
  void hear();

  const TrainConfig& config_;
  const KeepRule rule_;
  Rewards& rewards_;
  Ranks& ranks_;
  const std::string name_;  // of counters on the store
  const std::vector<Prompt> prompts_;
  const int64_t wanted_;
  std::vector<Sampled> group_;    // by prompt
  std::vector<char> passes_;      // by prompt: on any rank, for certain
  std::vector<Ended> due_, new_;  // verdicts not read yet: ended before the last call of needed(), after it
  int64_t needed_;
  int64_t sampled_tokens_ = 0;
  int64_t calls_ = 0;
};

}  // namespace ucas
