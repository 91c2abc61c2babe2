#include "records/run/steps.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"
#include "core/metrics.h"
#include "results/stats/spread.h"

namespace ucas {

namespace {

// Columns are as long as the table: a name that holds a step or an id would make a column of each.
constexpr size_t kMostMetrics = 2000, kMostValues = size_t{1} << 26;

void check_size(const StepTable& table, const JsonObject& row) {
  const size_t names = table.column.size(), steps = table.step.size();
  if (names <= kMostMetrics && names * steps <= kMostValues) return;
  throw Error(
      ErrorKind::limit,
      str(row.place(), ": ", grouped(static_cast<int64_t>(names)), " different metrics by step ", table.step.back(),
          ", expected at most ", grouped(static_cast<int64_t>(kMostMetrics)), ", and with all steps at most ",
          grouped(static_cast<int64_t>(kMostValues)), " values; does the name of a metric hold a step or an id?"));
}

bool known(double value) { return !std::isnan(value); }

// A data source may have any name, a file's even one that is no UTF-8.
std::string key_text(const std::string& name) {
  return json_text(valid_utf8(name) ? name : printable(name, 4 * name.size()));
}

}  // namespace

std::string step_line(std::span<const std::pair<std::string, double>> values) {
  std::string line = "{";
  std::set<std::string> keys;
  for (const auto& [name, value] : values) {
    const std::string key = key_text(name);
    if (!keys.insert(key).second) {
      throw Error(ErrorKind::config, str("two metrics have the name ", printable(key, 200), " in steps.jsonl; ",
                                         "rename one of the data sources or parts of the reward"));
    }
    if (line.size() > 1) line += ", ";
    line += key + ": ";
    if (!std::isfinite(value)) {
      line += "null";
    } else if (value == std::floor(value) && std::abs(value) < 1e15) {
      line += str(static_cast<int64_t>(value));
    } else {
      line += str(value);
    }
  }
  return line + "}";
}

const std::vector<double>* StepTable::find(const std::string& key) const {
  auto found = column.find(key);
  return found == column.end() ? nullptr : &found->second;
}

std::vector<std::string> StepTable::fitting(const std::string& pattern) const {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return find(pattern) ? std::vector{pattern} : std::vector<std::string>{};
  const std::string before = pattern.substr(0, star), after = pattern.substr(star + 1);
  std::vector<std::string> keys;
  for (const auto& [key, values] : column) {
    const bool fits = key.size() >= before.size() + after.size() && key.starts_with(before) && key.ends_with(after);
    if (fits) keys.push_back(key);
  }
  return keys;
}

std::vector<double> StepTable::mean_over(const std::string& pattern) const {
  const std::vector<std::string> keys = fitting(pattern);
  std::vector<double> means;
  for (size_t i = 0; !keys.empty() && i < step.size(); ++i) {
    std::vector<double> each;
    for (const std::string& key : keys) {
      const double value = column.at(key)[i];
      if (known(value)) each.push_back(value);
    }
    means.push_back(mean_of(each));
  }
  return means;
}

double StepTable::last(const std::string& key) const {
  const auto* values = find(key);
  if (!values) return kUnknown;
  auto found = std::find_if(values->rbegin(), values->rend(), known);
  return found == values->rend() ? kUnknown : *found;
}

double StepTable::first(const std::string& key) const {
  const auto* values = find(key);
  if (!values) return kUnknown;
  auto found = std::ranges::find_if(*values, known);
  return found == values->end() ? kUnknown : *found;
}

StepTable read_steps(const std::string& path, std::vector<std::string>& remarks) {
  StepTable table;
  each_json_line(path, remarks, [&](const JsonObject& row) {
    const int64_t number = row.whole_or(metric::training_global_step.key, -1);
    if (number < 0) row.refuse("training/global_step is missing or negative");
    const auto step = static_cast<double>(number);
    if (!table.empty() && step <= table.step.back()) {
      row.refuse(str("step ", step, " after step ", table.step.back(), ", expected a later one"));
    }
    const size_t index = table.step.size();
    table.step.push_back(step);
    for (const std::string& key : row.keys()) {
      auto& column = table.column[key];
      column.resize(index, kUnknown);
      column.push_back(row.number(key));
      if (!row.has(key)) table.not_finite.emplace_back(key, step);
    }
    for (auto& [key, column] : table.column) column.resize(index + 1, kUnknown);
    check_size(table, row);
  });
  return table;
}

SftTable read_sft_steps(const std::string& path, std::vector<std::string>& remarks) {
  SftTable table;
  each_json_line(path, remarks, [&](const JsonObject& row) {
    table.step.push_back(row.number_or("step", kUnknown));
    table.loss.push_back(row.number_or("loss", kUnknown));
    table.lr.push_back(row.number_or("lr", kUnknown));
    table.tokens.push_back(row.number_or("tokens", kUnknown));
  });
  return table;
}

}  // namespace ucas
