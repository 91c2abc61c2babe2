#include "config/stop_bound.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

std::vector<StopBound> parse_stop_bounds(const std::vector<std::string>& entries) {
  std::vector<StopBound> bounds;
  for (const std::string& entry : entries) {
    const size_t sign = entry.find_first_of("<>");
    StopBound bound{.metric = std::string(trim(entry.substr(0, sign)))};
    bound.above = sign != std::string::npos && entry[sign] == '>';
    const std::string number = sign == std::string::npos ? "" : std::string(trim(entry.substr(sign + 1)));
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bound.value);
    const bool read = error == std::errc() && end == number.data() + number.size() && std::isfinite(bound.value);
    if (bound.metric.empty() || !read) {
      throw Error(ErrorKind::config,
                  str("train.stop_when: \"", printable(entry, 80),
                      "\": expected METRIC < VALUE or METRIC > VALUE with a name of docs/metrics.md, for "
                      "example \"actor/entropy < 0.05\""));
    }
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

std::string crossed(std::span<const StopBound> bounds, StepRow values) {
  for (const StopBound& bound : bounds) {
    for (const auto& [name, value] : values) {
      if (!matches_star(name, bound.metric) || !(bound.above ? value > bound.value : value < bound.value)) continue;
      return str(name, " = ", value, ", ", bound.above ? "above " : "below ", bound.value, " (train.stop_when)");
    }
  }
  return "";
}

const StopBound* bound_without_metric(std::span<const StopBound> bounds, StepRow values) {
  for (const StopBound& bound : bounds) {
    const auto is_its = [&](const auto& named) { return matches_star(named.first, bound.metric); };
    if (std::ranges::none_of(values, is_its)) return &bound;
  }
  return nullptr;
}

}  // namespace ucas
