#include "config/plan/plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "config/config_file.h"
#include "config/plan/known_models.h"
#include "config/plan/step_time.h"

namespace ucas {

namespace {

struct PlanOptions {
  std::string memory, out, gpu;
  int64_t gpus = 1;
  MeanLengths lengths;
  bool json = false;
  void fields(Fields& f) {
    f.field("memory", memory,
            "memory of the machine to plan for, such as \"16GiB\" or \"500MB\"; empty = this machine");
    f.field("out", out, "run directory whose disk is checked; empty = the current directory's, with --gpu none");
    f.field("gpu", gpu,
            "device for step-time estimates: h100, h200, gh200, b200, a100, l4, l40s, a6000, rtxpro6000, rtx3060, "
            "rtx3070, rtx4070, rtx4080, rtx5080, rtx3090, rtx4090, rtx5090, or cpu; empty = cpu, this machine");
    f.field("gpus", gpus, Range{1, 4096}, "number of ranks, one device each; memory and time are per rank");
    f.field("prompt_tokens", lengths.prompt, Range{0, 1e7}, "mean prompt length in tokens; 0 = the maximum allowed");
    f.field("response_tokens", lengths.response, Range{0, 1e7},
            "mean response length in tokens; 0 = the maximum allowed");
    f.field("json", json, "print one JSON object with sizes in bytes instead of text");
  }
};

// Of a directory, or of a model that is not here: then its shape is all that is known.
PlannedModels models_of_plan(const TrainConfig& config, PlanHead& head) {
  if (config.model.empty()) {
    throw Error(
        ErrorKind::config,
        "model is empty: give --model DIR, a Hugging Face checkpoint directory, or a known model's name, such as "
        "qwen2.5-7b");
  }
  if (exists(config.model)) return planned_models(config);
  const FoundModel found = model_of_hub_name(config.model);
  head.notes.push_back(str(printable(config.model, 200), " is no directory here; its shape is of ", found.from));
  return planned_models(config, found.config);
}

}  // namespace

int run_plan(const Words& words) {
  CommandLine line = parse_command_line(words, {"json"});
  expand_short_forms(line.settings);
  PlanOptions options;
  take_own(options, line.settings);
  if (line.positionals.size() > 1) {
    throw Error(ErrorKind::usage,
                str("one CONFIG at most, got ", join(line.positionals, " "), "; see ucas plan --help"));
  }
  std::vector<Setting> settings;
  if (!line.positionals.empty()) settings = read_config_file(line.positionals[0]);
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  const bool on_gpu = !options.gpu.empty() && options.gpu != "cpu";
  if (on_gpu) settings.push_back({"device", std::string("cuda"), str("--gpu ", options.gpu)});
  const TrainConfig config = make_train_config(settings);
  config.validate_settings();
  if (config.device != "cpu" && !on_gpu) {
    throw Error(ErrorKind::unsupported, str("device = ", printable(config.device),
                                            ": --gpu NAME says which GPU to plan for; without it leave device out"));
  }
  PlanHead head;
  Device device = on_gpu ? gpu_named(options.gpu, config.dtype) : here_device(config.dtype, config.threads);
  set_link(device, options.gpus);
  PlannedModels models = models_of_plan(config, head);
  PlanLimits limits = limits_here(options.out);
  if (on_gpu && options.out.empty()) limits.disk_free = 0;  // this folder's disk need not be that machine's
  if (on_gpu) limits.whose = str("one ", device.name, " has"), limits.memory = device.memory, limits.memory_free = 0;
  if (!options.memory.empty()) {
    limits.memory = parse_memory(options.memory);
    limits.memory_free = 0;
    limits.whose = "--memory is";
  }
  models.ranks = options.gpus;
  models.gpu = on_gpu ? limits.memory : 0;
  if (on_gpu) models.driver = driver_memory(device, options.gpus, config.update.reduce == Reduce::micro);
  head.title =
      str(config.title(), " on ", config.model, options.gpus > 1 ? str(", one of ", options.gpus, " ranks") : "");
  const MemoryPlan plan = plan_memory(config, models);
  const TimePlan time = plan_time(config, models, device, options.lengths);
  const std::vector<Remedy> lower = remedies(config, models, limits.memory);
  if (options.json) {
    out(plan_json(plan, head, limits, lower, time));
  } else {
    out(str(plan_text(plan, head, limits, lower), "\n", time_text(time, device)));
  }
  check_plan(plan, config, models, limits);
  return kDone;
}

std::string options_plan() { return options_help(PlanOptions{}); }

}  // namespace ucas
