#include "progress/run_history.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "records/run_record.h"

namespace ucas {

namespace {

// Mean over the sources of a validation; unknown where there was none.
class ValidationMean {
 public:
  void add(const std::string& key, double value) {
    if (!key.starts_with("val-core/") || !std::isfinite(value)) return;
    sum_ += value;
    count_ += 1;
  }
  double value() const { return count_ > 0 ? sum_ / count_ : kUnknown; }

 private:
  double sum_ = 0, count_ = 0;
};

}  // namespace

void RunHistory::begin(const TrainStart& start) {
  if (start.step == 0 || start.supervised) return;
  try {
    steps_ = read_run(start.run).steps;
  } catch (const Error&) {
    steps_ = {};
  }
  std::vector<double> validation(steps_.step.size());
  for (size_t i = 0; i < validation.size(); ++i) {
    ValidationMean mean;
    for (const auto& [key, values] : steps_.column) mean.add(key, values[i]);
    validation[i] = mean.value();
  }
  steps_.column[kValidation] = std::move(validation);
  looked_ = false;
}

void RunHistory::add(int64_t step, StepRow metrics) {
  const size_t before = steps_.step.size();
  steps_.step.push_back(static_cast<double>(step));
  const auto put = [&](const std::string& key, double value) {
    auto& column = steps_.column[key];
    column.resize(before, kUnknown);
    column.push_back(std::isfinite(value) ? value : kUnknown);
  };
  ValidationMean mean;
  for (const auto& [key, value] : metrics) {
    put(key, value);
    mean.add(key, value);
    if (!std::isfinite(value)) steps_.not_finite.emplace_back(key, static_cast<double>(step));
  }
  put(kValidation, mean.value());
  for (auto& [key, column] : steps_.column) column.resize(before + 1, kUnknown);
  looked_ = false;
}

void RunHistory::look() const {
  if (std::exchange(looked_, true)) return;
  alarms_.clear();
  over_.clear();
  for (FoundSign& sign : find_signs(steps_).found) {
    if (sign.over()) {
      over_.push_back(std::move(sign));
    } else if (!sign.note) {
      alarms_.push_back(std::move(sign));
    }
  }
}

void list_alarms(const RunHistory& history) {
  for (const FoundSign& sign : history.alarms()) {
    log(str("alarm  ", sign.row->title, ": ", sign.what, ". ", sign.advice()));
  }
  for (const FoundSign& sign : history.over()) log(str("alarm  ", sign.row->title, ", ", sign.what));
}

}  // namespace ucas
