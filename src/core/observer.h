// Observes a training: called before each phase and after each step, so that library code prints nothing and knows no
// terminal. Every function does nothing by default. Called by train/loop/trainer, from its thread; arguments are valid
// during the call only.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ucas {

struct TrainStart {
  std::string title;  // of the method
  std::string run;    // directory
  int64_t step = 0;   // done before: above 0 where a run is resumed
  int64_t total_steps = 0;
  // Where the run is so many prompts long, and total_steps is only the most that they can give: the progress then is
  // training/prompts of each step.
  int64_t prompts = 0, total_prompts = 0;
  bool supervised = false;  // steps are updates on demonstrations, with the numbers of sft.jsonl
};

// A row of steps.jsonl: names and values, in the order in which they were recorded.
using StepRow = std::span<const std::pair<std::string, double>>;
// NaN where the row has none of this name.
inline double value_in(StepRow row, std::string_view name) {
  for (const auto& [known, value] : row) {
    if (known == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void begin(const TrainStart& /*start*/) {}
  // What the trainer is at now: "generating", "updating" ...; `detail` where there is more to say.
  virtual void phase(const std::string& /*what*/, const std::string& /*detail*/ = "") {}
  // Step 0 is the validation before training.
  virtual void step(int64_t /*step*/, StepRow /*metrics*/) {}
  virtual void end() {}  // finished or stopped; not called when an error ends the run
};

}  // namespace ucas
