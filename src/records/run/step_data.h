// One training step, saved with everything that methods read and what they made of it: RUN/signals/step-NNNNNNN.jsonl
// (docs/formats.md). Advantages can be recomputed from it under any method, and single tokens be looked at, without
// generating or training. Numbers read back to the same float32; equal steps give equal bytes.
// Written by train/loop/step_record, read by cli/commands/advantages and the report.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "verify/registry.h"

namespace ucas {

struct StepData {
  struct Signal {  // a trace row of the method: values are [N] if per_token, else [B]
    std::string name;
    bool per_token = false;
    std::vector<float> values;
  };
  int64_t step = 0;
  std::string method, preset;                                 // of the run; the registry's name
  std::vector<std::pair<std::string, std::string>> settings;  // all its options, values as in config.toml
  bool answer_classes = false;                                // Verdict::answer_class was computed
  int64_t groups_of_step = 0;                                 // that the step trained on; the first ones are here
  Batch batch;
  std::vector<std::string> problem;            // id of each group's problem
  std::vector<std::string> question;           // its text before the template; may be empty, as `gold`
  std::vector<std::vector<std::string>> gold;  // any one counts
  std::vector<GraderKind> grader;              // of each group; may be empty: math, as in older files
  std::vector<std::string> piece;              // [N] text of each token, for people; may be empty
  std::vector<float> advantage;                // [N] as trained on
  // Of each token at the last update that used it; both empty where they were not recorded (older files).
  std::vector<float> ratio;  // [N] pi_theta / pi_old
  std::vector<uint8_t>
      clipped;  // [N] 1: the clip held the token, as the method counts it; 2: the dual clip did; else 0
  std::vector<Signal> trace;

  bool whole() const { return static_cast<int64_t>(batch.groups.size()) == groups_of_step; }
};

// The first groups of a batch with at most `tokens` tokens in all, but at least one group; 0 = no limit.
Batch leading_groups(const Batch& batch, int64_t tokens);

// The steps of a run directory whose signals are there, ascending; none if it has none.
std::vector<int64_t> steps_with_signals(const std::string& run);

std::string step_data_lines(const StepData& data);
// Verdict::answer_class of each group's responses, by the run's grader of it, where the run did not need them.
Batch with_answer_classes(const StepData& data);
// Throws Error: path, limit, or data_line, utf8, dup_key, header_json naming the line.
StepData read_step_data(const std::string& path);

}  // namespace ucas
