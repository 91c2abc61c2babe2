#include "plan/plan.h"

#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "config/train_options.h"

namespace ucas {

namespace {

struct PlanOptions {
  std::string memory, out;
  bool json = false;
  void fields(Fields& f) {
    f.field("memory", memory, "plan for a machine with so much (\"16GiB\", \"500MB\") instead of this one");
    f.field("out", out, "the run directory to be: whose disk is looked at; empty = this folder's");
    f.field("json", json, "one JSON object, in bytes, instead of text");
  }
};

// "16GiB", "1.5 GB", "800MB", "100000".
int64_t parse_bytes(const std::string& text) {
  size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit(trim(std::string_view(text).substr(end)));
  const std::pair<const char*, double> units[] = {{"", 1},         {"B", 1},       {"KB", 1e3},     {"MB", 1e6},
                                                  {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                                  {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [name, factor] : units) {
    const double bytes = number * factor;
    if (end > 0 && unit == name && bytes >= 1 && bytes < 1e18) return static_cast<int64_t>(bytes);
  }
  throw Error("usage",
              str("--memory ", printable(text), ": expected a size such as 16GiB, 500MB or a number of bytes"));
}

// Takes the settings out that are this command's own.
PlanOptions own_options(std::vector<Setting>& settings) {
  PlanOptions options;
  std::vector<Setting> own, others;
  for (const Setting& s : settings) {
    const bool ours = s.key == "memory" || s.key == "out" || s.key == "json";
    (ours ? own : others).push_back(s);
  }
  ucas::apply(options, own);
  settings = std::move(others);
  return options;
}

}  // namespace

int run_plan(const Words& words) {
  CommandLine line = parse_command_line(words, {"json"});
  expand_short_forms(line.settings);
  const PlanOptions options = own_options(line.settings);
  if (line.positionals.size() > 1) {
    throw Error("usage", str("one CONFIG at most, got ", join(line.positionals, " "), "; see ucas plan --help"));
  }
  std::vector<Setting> settings;
  if (!line.positionals.empty()) settings = read_config_file(line.positionals[0]);
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  const TrainConfig config = make_train_config(settings);
  config.validate_settings();
  if (config.device != "cpu") {
    throw Error("unsupported", str("device = ", printable(config.device),
                                   ": the memory of the CPU alone is planned; leave device out"));
  }
  const PlannedModels models = planned_models(config);
  PlanLimits limits = limits_here(options.out);
  if (!options.memory.empty()) {
    limits.memory = parse_bytes(options.memory);
    limits.memory_free = 0;
    limits.whose = "--memory is";
  }
  const MemoryPlan plan = plan_memory(config, models);
  const std::vector<Remedy> lower = remedies(config, models, limits.memory);
  out(options.json ? plan_json(plan, limits, lower)
                   : plan_text(plan, str(config.title(), " on ", config.model), limits, lower));
  check_plan(plan, config, models, limits);
  return kDone;
}

std::string options_plan() { return options_help(PlanOptions{}); }

}  // namespace ucas
