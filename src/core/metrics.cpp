#include "core/metrics.h"

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

std::vector<MetricSection> make_sections() {
  std::vector<MetricSection> sections;
#define SECTION(id) sections.push_back({#id, {}});
#define METRIC(id, ...) sections.back().rows.push_back(&metric::id);
#define SPREAD(id, ...) \
  for (const Metric* row : {&metric::id.mean, &metric::id.max, &metric::id.min}) sections.back().rows.push_back(row);
#include "core/metrics.inc"
#undef SECTION
#undef METRIC
#undef SPREAD
  return sections;
}

// With any number of *, each of one character or more.
bool fits(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  for (size_t used = star + 1; used <= name.size(); ++used) {
    if (fits(name.substr(used), pattern.substr(star + 1))) return true;
  }
  return false;
}

}  // namespace

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::number:
      return "";
    case Unit::share:
      return "share";
    case Unit::nats:
      return "nats";
    case Unit::tokens:
      return "tokens";
    case Unit::seconds:
      return "s";
    case Unit::gib:
      return "GiB";
    case Unit::bytes:
      return "bytes";
    case Unit::tokens_per_second:
      return "tokens/s";
  }
  return "";
}

std::span<const MetricSection> metric_sections() {
  static const std::vector<MetricSection> kSections = make_sections();
  return kSections;
}

bool is_of(std::string_view name, const Metric& metric) { return fits(name, metric.key); }

const Metric* find_metric(std::string_view name) {
  for (const MetricSection& section : metric_sections()) {
    for (const Metric* row : section.rows) {
      if (is_of(name, *row)) return row;
    }
  }
  return nullptr;
}

std::string name_with(const Metric& metric, const std::vector<std::string>& words) {
  std::string name;
  size_t next = 0;
  for (const char* c = metric.key; *c != '\0'; ++c) {
    if (*c != '*') {
      name += *c;
      continue;
    }
    UCAS_CHECK(next < words.size(), "a metric's name needs a word for each *");
    name += words[next++];
  }
  UCAS_CHECK(next == words.size(), "a metric's name has a * for each word");
  return name;
}

std::string documented_name(const Metric& metric) {
  return name_with(metric, *metric.stars == '\0' ? std::vector<std::string>{} : split(metric.stars, ' '));
}

}  // namespace ucas
