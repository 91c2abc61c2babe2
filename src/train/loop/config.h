// Options [train]: how long a run is, what it validates, and what it keeps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

constexpr int64_t kStoredSignalTokens = 65536;  // most tokens of a step whose signals are kept

struct RunConfig {
  int64_t steps = 0;  // 0 = by epochs
  int64_t epochs = 1;
  int64_t save_freq = 0;  // 0 = at the end only
  int64_t keep = 2;
  int64_t test_freq = 0;  // validation every n steps; 0 = off
  bool val_before_train = true;
  int64_t val_n = 0;             // sampled responses to each validation problem, and the greedy one
  std::string best_metric;       // a metric of validation; the checkpoint where it is highest is kept, too; "" = none
  int64_t stored_prompts = 2;    // per step, whose responses are kept for the report
  int64_t stored_responses = 4;  // kept of each
  int64_t stored_signals =
      20;                 // signals of every N-th step, and of the first, are kept (records/run/step_data.h); 0 = off
  double max_hours = 0;   // 0 = no limit
  double watchdog = 300;  // seconds without progress until it speaks (base/process/activity.h); 0 = never
  void fields(Fields& f);
};

}  // namespace ucas
