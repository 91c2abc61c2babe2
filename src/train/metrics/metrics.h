// The numbers of one step under verl's names (docs/metrics.md), as one line of steps.jsonl. Only declared numbers are
// written: those of core/metrics.h and those of the method's row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/metrics.h"
#include "core/observer.h"
#include "objective/aggregate.h"
#include "records/run/steps.h"
#include "train/collect/collect.h"
#include "train/signals/logprobs.h"

namespace ucas {

class StepMetrics {
 public:
  void set(const Metric& metric, double value) { put(metric.key, value); }  // later values replace earlier ones
  void set(const Metric& metric, const std::vector<std::string>& words, double value) {  // one of a pattern
    put(name_with(metric, words), value);
  }
  void set_spread(const MetricSpread& spread, std::span<const float> values);
  // What a method recorded, or another part of the program that knows no StepMetrics.
  void add(std::span<const std::pair<std::string, double>> recorded) {
    for (const auto& [name, value] : recorded) put(name, value);
  }
  double get(const Metric& metric) const { return value_in(values_, metric.key); }  // NaN if it is not there
  StepRow values() const { return values_; }
  // {"training/global_step":1,...}: in the order of setting; non-finite numbers are null.
  std::string json() const { return step_line(values_); }

 private:
  void put(const std::string& name, double value);

  std::vector<std::pair<std::string, double>> values_;
};

// Groups of names, each from what its stage produced.
void record_collection(StepMetrics& m, const CollectStats& stats);
void record_batch(StepMetrics& m, const Batch& batch, std::span<const float> advantage, int64_t response_limit,
                  int64_t vocabulary);
void record_mismatch(StepMetrics& m, const Mismatch& mismatch);
// Means over the step's updates.
void record_losses(StepMetrics& m, std::span<const LossMetrics> updates, const ObjectiveConfig& objective);
double resident_gb();  // of this process, now
// From here on the peak is that of what comes: a process that evaluated or trained before gives back what it still
// holds, and the system's own mark starts anew where it lets us, else readings of peak_resident_gb() count.
void begin_peak_resident();
double peak_resident_gb();  // since then, or since the process started

}  // namespace ucas
