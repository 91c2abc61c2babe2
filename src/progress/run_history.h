// What a watched training has shown so far: the rows of steps.jsonl as the report would read them, and the signs in
// them (report/signs.h). Fed by a TrainObserver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/observer.h"
#include "records/run/steps.h"
#include "report/signs.h"

namespace ucas {

class RunHistory {
 public:
  static constexpr const char* kValidation = "validation";  // column made here: mean over the validation sources

  void begin(const TrainStart& start);  // a run that goes on has its earlier steps behind it
  void add(int64_t step, StepRow metrics);

  const StepTable& steps() const { return steps_; }
  // Those that stand and matter, as of now, and those that stood and ended. Looked for when asked, once a step.
  const std::vector<FoundSign>& alarms() const { return look(), alarms_; }
  const std::vector<FoundSign>& over() const { return look(), over_; }

 private:
  void look() const;
  StepTable steps_;
  mutable std::vector<FoundSign> alarms_, over_;
  mutable bool looked_ = false;
};

// What a run that ends, or stops, leaves to look at: each alarm with what it usually means and what to do, and what is
// over, as messages.
void list_alarms(const RunHistory& history);

}  // namespace ucas
