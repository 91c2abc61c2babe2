// Bounds on the numbers of a step that end a run: train.stop_when, such as "actor/entropy < 0.05".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/observer.h"

namespace ucas {

struct StopBound {
  std::string metric;  // a name of steps.jsonl; one * stands for any text
  bool above = false;  // the run ends above the value, or below it
  double value = 0;
};

// "METRIC < VALUE" or "METRIC > VALUE" each. Error(ErrorKind::config) with the first that is neither.
std::vector<StopBound> parse_stop_bounds(const std::vector<std::string>& entries);
// The first number beyond a bound, for people; "" where none is. A NaN is beyond none.
std::string crossed(std::span<const StopBound> bounds, StepRow values);
// The first bound whose metric is none of these; null where all are there.
const StopBound* bound_without_metric(std::span<const StopBound> bounds, StepRow values);

}  // namespace ucas
