#include "config/explain/explain.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "core/metrics.h"
#include "methods/registry.h"
#include "report/signs.h"

namespace ucas {

namespace {

OrderedJson json_of(const Metric& metric) {
  return {{"name", documented_name(metric)}, {"unit", name_of(metric.unit)}, {"meaning", metric.help}};
}

// Every number that a step may log, by section; those of methods; and the causes that are looked for in them.
OrderedJson metrics_json() {
  OrderedJson sections = OrderedJson::object(), methods = OrderedJson::object(), causes = OrderedJson::array();
  for (const MetricSection& section : metric_sections()) {
    for (const Metric* metric : section.rows) sections[section.name].push_back(json_of(*metric));
  }
  for (const MethodRow& row : method_rows()) {
    for (const Metric* metric : row.metrics) methods[row.name].push_back(json_of(*metric));
  }
  for (const SignRow& row : sign_rows()) {
    causes.push_back({{"title", row.title}, {"metric", row.rules[0].key}, {"when", when_of(row)}});
  }
  return {{"format", "ucas-metrics-1"}, {"sections", sections}, {"methods", methods}, {"causes", causes}};
}

}  // namespace

int run_explain(const Words& words) {
  CommandLine line = parse_command_line(words, {"metrics"});
  expand_short_forms(line.settings);
  if (std::erase_if(line.settings, [](const Setting& s) { return s.key == "metrics"; }) > 0) {
    if (!line.positionals.empty() || !line.settings.empty()) {
      throw Error(ErrorKind::usage, "--metrics goes alone: it explains every metric of a step");
    }
    out(json_text(metrics_json(), 2) + "\n");
    return kDone;
  }
  const std::vector<std::string>& given = line.positionals;
  if (given.empty() && line.settings.empty()) {
    throw Error(ErrorKind::usage,
                "CONFIG is missing: a TOML file, an embedded name such as ucas-paper-7b, or --method NAME");
  }
  if (given.size() > 1) {
    throw Error(ErrorKind::usage, str("one CONFIG, got ", join(given, " "), "; see ucas explain --help"));
  }
  out(explain_text(read_explained(given.empty() ? "" : given[0], line.settings)));
  return kDone;
}

std::string options_explain() { return ""; }

}  // namespace ucas
