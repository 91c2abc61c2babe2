#include "methods/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "base/text/fields.h"

namespace ucas {

namespace {

MethodRow named(const char* name, MethodRow row) {
  row.name = name;
  return row;
}

}  // namespace

std::span<const MethodRow> method_rows() {
#define UCAS_ROW(name) named(#name, name##_row()),
  static const std::vector<MethodRow> kRows = {UCAS_METHODS(UCAS_ROW)};
#undef UCAS_ROW
  return kRows;
}

const Metric* find_any_metric(std::string_view name) {
  if (const Metric* common = find_metric(name)) return common;
  for (const MethodRow& row : method_rows()) {
    for (const Metric* own : row.metrics) {
      if (is_of(name, *own)) return own;
    }
  }
  return nullptr;
}

const MethodRow& find_method(const std::string& name) {
  std::vector<std::string> names;
  for (const MethodRow& row : method_rows()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  const std::string same = peer_value(name, names);  // GRPO
  throw Error(ErrorKind::config, str("method.name = \"", printable(name), "\": expected one of ", join(names, ", "),
                                     same.empty() ? did_you_mean(name, names) : did_you_mean(same)));
}

bool MethodRow::has_preset(const std::string& preset) const {
  return std::ranges::find(presets, preset) != presets.end();
}

std::unique_ptr<Method> MethodRow::make(const std::string& preset) const {
  if (!preset.empty() && !has_preset(preset)) {
    throw Error(ErrorKind::config,
                str("method.preset = \"", printable(preset), "\": ", name, " has ", join(presets, ", ")));
  }
  std::unique_ptr<Method> method = create(preset.empty() ? presets.front() : preset);
  method->row_ = *this;
  return method;
}

std::unique_ptr<Method> make_method(const std::string& name, const std::string& preset) {
  return find_method(name).make(preset);
}

}  // namespace ucas
