#include "progress/run_history.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

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
  double value() const { return count_ > 0 ? sum_ / count_ : std::nan(""); }

 private:
  double sum_ = 0, count_ = 0;
};

}  // namespace

void RunHistory::begin(const TrainStart& start) {
  title_ = start.title;
  run_.name = start.run;
  if (start.step == 0 || start.supervised) return;
  try {
    run_.steps = read_run(start.run).steps;
  } catch (const Error&) {
    run_.steps = {};
  }
  StepTable& table = run_.steps;
  std::vector<double> validation(table.step.size());
  for (size_t i = 0; i < table.step.size(); ++i) {
    ValidationMean mean;
    for (const auto& [key, values] : table.column) mean.add(key, values[i]);
    validation[i] = mean.value();
  }
  table.column[kValidation] = std::move(validation);
  looked_ = false;
}

void RunHistory::add(int64_t step, StepRow metrics) {
  StepTable& table = run_.steps;
  size_t before = table.step.size();
  table.step.push_back(static_cast<double>(step));
  auto put = [&](const std::string& key, double value) {
    auto& column = table.column[key];
    column.resize(before, std::nan(""));
    column.push_back(std::isfinite(value) ? value : std::nan(""));
  };
  ValidationMean mean;
  for (const auto& [key, value] : metrics) {
    put(key, value);
    mean.add(key, value);
    if (!std::isfinite(value)) table.not_finite.emplace_back(key, static_cast<double>(step));
  }
  put(kValidation, mean.value());
  for (auto& [key, column] : table.column) column.resize(before + 1, std::nan(""));
  looked_ = false;
}

void list_alarms(const RunHistory& history) {
  for (const Alarm& alarm : history.alarms()) log(str("alarm  ", alarm.title, ": ", alarm.what, ". ", alarm.cause));
  for (const Alarm& alarm : history.over()) log(str("alarm  ", alarm.title, ", ", alarm.what));
}

const std::vector<Alarm>& RunHistory::alarms() const {
  look();
  return alarms_;
}

const std::vector<Alarm>& RunHistory::over() const {
  look();
  return over_;
}

void RunHistory::look() const {
  if (std::exchange(looked_, true)) return;
  RunGroup group;
  group.title = title_;
  group.trained = true;
  group.runs = {&run_};
  alarms_.clear();
  over_.clear();
  for (Alarm& alarm : find_alarms({group}, {}).alarms) {
    if (alarm.serious) {
      alarms_.push_back(std::move(alarm));
    } else if (alarm.over) {
      over_.push_back(std::move(alarm));
    }
  }
}

}  // namespace ucas
