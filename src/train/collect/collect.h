// prompts -> o_i ~ pi_old, verdicts, rewards R_i, kept groups: one step's Batch, without the trainer's own signals
// (train/signals/logprobs adds those).
// Fed by data/prompts/templates (prompt ids), the rollout and train/collect/reward; objective/filter/dynamic_sampling
// decides which prompts of a generation batch are trained on (dynamic sampling).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/batch.h"
#include "objective/filter/dynamic_sampling.h"
#include "rollout/rollouter.h"
#include "text/tokenizer/tokenizer.h"
#include "train/collect/data_cursor.h"
#include "train/collect/reward.h"
#include "train/collect/training_set.h"

namespace ucas {

struct CollectStats {
  int64_t gen_batches = 0;
  int64_t groups_generated = 0, groups_kept = 0, groups_trained = 0;
  int64_t solve_all = 0, solve_none = 0;  // groups whose responses are all right, all wrong
  int64_t dead = 0;                       // of both, those whose rewards are equal, too
  int64_t responses = 0, truncated = 0;   // of all generated
  int64_t graded = 0;                     // of these, answers to problems with a right answer
  int64_t generated_tokens = 0;
  bool multi_turn = false;                   // an environment answers
  int64_t inserts = 0, inserted_tokens = 0;  // of it, in all generated
  std::array<int64_t, 4> verdicts{};         // by VerdictKind
  std::vector<std::string> unreadable;       // the first of those without an answer
  double correct_share = 0;                  // of all graded responses
  double seconds_gen = 0, seconds_reward = 0;
};

struct Collected {
  Batch batch;
  std::vector<std::string> text;  // [B] response texts, without the stop token
  CollectStats stats;
  bool stopped = false;         // by should_stop: nothing may be trained on
  bool out_of_prompts = false;  // the passes ended before the step was full, and it is dropped (data.train_short)
};

struct Collector {
  const TrainConfig& config;
  const TrainingSet& data;
  Rollouter& rollout;
  const Tokenizer& tokenizer;
  const Graders& graders;
  Rewards& rewards;
  std::vector<int32_t> stop_ids;
  bool answer_classes = false;
  std::function<bool()> should_stop;
  std::function<void(const CollectStats&, int64_t kept)> on_batch;  // progress between generation batches
  std::function<bool(const Episode&)> ends = nullptr;               // at rollout.stop
  std::function<bool(bool)> agree;  // whether it is so on any rank; null: there is one alone

  // Generates until the step has its data.train_batch_size prompts (objective/filter/dynamic_sampling.h), or the
  // generation batches or the passes of the run are used up. May keep none. Throws Error(ErrorKind::no_signal) when a
  // whole epoch kept nothing.
  Collected collect(int64_t step, DataCursor& cursor) const;
};

// What the rule sees of a group.
PromptOutcome outcome_of(std::span<const Response> group, KeepMetric metric);

}  // namespace ucas
