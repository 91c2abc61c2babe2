// What a checkpoint's state.json holds besides weights and moments, and reads back from a file that is not trusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "train/collect/data_cursor.h"
#include "train/optimizer/skipped_updates.h"

namespace ucas {

// The best validation so far, by train.best_metric.
struct BestStep {
  int64_t step = 0;  // 0: none yet
  double value = 0;
};

struct TrainState {
  int64_t step = 0;  // finished rollout steps
  DataCursor cursor;
  SkippedUpdates skipped;               // of the policy
  int64_t empty_steps = 0;              // rollout steps that kept no group
  std::optional<double> entropy_coeff;  // of the next step, once entropy_target steers it
  std::map<std::string, std::map<std::string, double>> auxiliary_models;  // AuxiliaryModel::state() by name
  BestStep best;
  std::string fingerprint;  // of the run that saved it: train/state/fingerprint.h

  std::string json() const;
  // Of the checkpoint of `step`. Throws Error naming file and key where a value is absent, of another type or out of
  // range, or the step is another one.
  static TrainState parse(const std::string& json, const std::string& file, int64_t step);
};

}  // namespace ucas
