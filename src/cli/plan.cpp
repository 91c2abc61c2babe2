#include "plan/plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "config/train_options.h"
#include "plan/step_time.h"

namespace ucas {

namespace {

struct PlanOptions {
  std::string memory, out, gpu;
  int64_t gpus = 1;
  MeanLengths lengths;
  bool json = false;
  void fields(Fields& f) {
    f.field("memory", memory, "plan for a machine with so much (\"16GiB\", \"500MB\") instead of this one");
    f.field("out", out, "the run directory to be: whose disk is looked at; empty = this folder's");
    f.field("gpu", gpu,
            "the time of a step, too, on h100, h200, a100, rtx4090 or this machine's cpu; empty = memory alone");
    f.field("gpus", gpus, Range{1, 4096}, "processes, one on each device: memory and time are those of one rank");
    f.field("prompt_tokens", lengths.prompt, Range{0, 1e7}, "of a prompt in the mean; 0 = the longest allowed");
    f.field("response_tokens", lengths.response, Range{0, 1e7}, "of a response in the mean; 0 = the longest allowed");
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
  const std::vector<FieldValue> known = fields_of(options);
  std::vector<Setting> own, others;
  for (const Setting& s : settings) {
    (std::ranges::find(known, s.key, &FieldValue::key) != known.end() ? own : others).push_back(s);
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
  const bool timed = !options.gpu.empty(), on_gpu = timed && options.gpu != "cpu";
  const Device device = on_gpu  ? gpu_named(options.gpu, config.dtype)
                        : timed ? here_device(config.dtype, config.threads)
                                : Device{};
  PlannedModels models = planned_models(config);
  PlanLimits limits = limits_here(options.out);
  if (on_gpu) limits.whose = str("a ", device.name, " has"), limits.memory = device.memory, limits.memory_free = 0;
  if (!options.memory.empty()) {
    limits.memory = parse_bytes(options.memory);
    limits.memory_free = 0;
    limits.whose = "--memory is";
  }
  models.ranks = options.gpus;
  models.gpu = on_gpu ? limits.memory : 0;
  const MemoryPlan plan = plan_memory(config, models);
  const TimePlan time = timed ? plan_time(config, models, device, options.lengths) : TimePlan{};
  const std::vector<Remedy> lower = remedies(config, models, limits.memory);
  if (options.json) {
    out(plan_json(plan, limits, lower, timed ? &time : nullptr));
  } else {
    const std::string title =
        str(config.title(), " on ", config.model, options.gpus > 1 ? str(", one of ", options.gpus, " ranks") : "");
    out(plan_text(plan, title, limits, lower));
    if (timed) out("\n" + time_text(time, device));
  }
  check_plan(plan, config, models, limits);
  return kDone;
}

std::string options_plan() { return options_help(PlanOptions{}); }

}  // namespace ucas
