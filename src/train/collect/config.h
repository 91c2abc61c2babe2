// Options [data] and [reward]: which problems are sampled in which order, and what a response is worth.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/verdict.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "objective/config.h"
#include "verify/registry.h"
#include "verify/sandbox/sandbox.h"

namespace ucas {

struct TrainDataConfig {
  std::vector<std::string> files;
  std::string prompt_template = "auto";  // config/policy_options.h
  FewShot examples;
  int64_t max_prompt_length = 1024;
  int64_t train_batch_size = 128;    // prompts trained on per step
  int64_t gen_batch_size = 0;        // prompts generated at a time; 0 = train_batch_size
  int64_t max_num_gen_batches = 10;  // of dynamic sampling, per step; 0 = no limit
  bool train_short = true;           // out of generation batches: train on the fewer prompts there are, or stop
  bool shuffle = true;
  bool skip_bad_rows = false;
  ProblemColumns columns;
  std::vector<std::string> val_files;
  void fields(Fields& f);
};

// reward.python of problems of reasoning-gym (hf/hub.h).
inline constexpr const char* kTaskScorers = "reasoning_gym";

struct RewardConfig {
  double correct = 1, wrong = 0;
  bool partial = false;  // scores between 0 and 1, by Verdict::score
  GraderKind grader = GraderKind::math;
  std::vector<std::string> graders;  // "SOURCE=GRADER": of these data sources
  double tolerance = 1e-4;           // of the numeric one
  std::vector<std::string>
      weights;          // "PART=WEIGHT" (objective/advantage/reward_terms.h); none: the answer, or the command
  std::string format;   // pattern of the whole response
  std::string command;  // gives the score instead of the verdict (train/collect/reward_command.h); "": none
  std::string python;   // gives it, too: FILE.py:FUNCTION, or the tasks' own scorers (kTaskScorers)
  double command_seconds = 600;
  ExtractOption extract = ExtractOption::automatic;  // config/policy_options.h
  Truncated truncated = Truncated::grade;
  int64_t overlong_buffer = 0;  // DAPO overlong shaping (docs/paper.md); 0 = off
  double overlong_factor = 1;
  double kl_coeff = 0;  // KL in the reward (objective/loss/kl.h); 0 = off
  KlEstimator kl_estimator = KlEstimator::k1;
  code::CodeOptions code;
  void fields(Fields& f);
  void validate() const;
  bool from_outside() const { return !command.empty() || !python.empty(); }
  bool asks_rows() const { return !python.empty() && python != kTaskScorers; }  // a function, called with the columns
  std::string scorer() const;  // "reward.command python3 r.py", of messages
  GraderSetup setup() const { return {said(extract).value_or(Extract::strict), code, tolerance}; }
};

}  // namespace ucas
