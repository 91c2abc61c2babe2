// What a watched training has shown so far: the rows of steps.jsonl as the report would read them, and the report's
// alarms in them (report/alarms). Fed by a TrainObserver.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/observer.h"
#include "records/run_record.h"
#include "report/alarms.h"

namespace ucas {

class RunHistory {
 public:
  static constexpr const char* kValidation = "validation";  // column made here: mean over the validation sources

  void begin(const TrainStart& start);  // a run that goes on has its earlier steps behind it
  void add(int64_t step, StepRow metrics);

  const StepTable& steps() const { return run_.steps; }
  // Serious ones, as of now. Looked for over all steps when asked, once a step.
  const std::vector<Alarm>& alarms() const;
  // Of what stood and ended.
  const std::vector<Alarm>& over() const;

 private:
  void look() const;
  RunRecord run_;
  std::string title_;
  mutable std::vector<Alarm> alarms_, over_;
  mutable bool looked_ = false;
};

// What a run that ends, or stops, leaves to look at: each alarm with what it usually means, and what is over, as
// messages.
void list_alarms(const RunHistory& history);

}  // namespace ucas
