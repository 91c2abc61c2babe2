#include "train/loop/run_plan.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "config/plan/step_time.h"
#include "rollout/policy.h"
#include "rollout/sampling/kv_budget.h"

namespace ucas {

namespace {

std::string human(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::string device_of(const TrainConfig& config, const Ranks& ranks, int64_t visible) {
  const bool counted = config.device == "cuda" && !ranks.alone();
  return counted ? device_of_rank(config.device, ranks.place().local, visible) : config.device;
}

// Bytes of this rank's GPU, as its driver says; 0: of the CPU, or not known.
int64_t memory_of_device(const TrainConfig& config, const Ranks& ranks) {
  if (config.device == "cpu") return 0;
  const std::string name = device_of(config, ranks, cuda_devices());
  return cuda_memory(name.starts_with("cuda:") ? std::atoll(name.c_str() + 5) : 0);
}

// The ranks of a host divide its memory, as if each were the one that saves. Rank 0 alone writes; checkpoints that a
// run has already are not counted again. Of a GPU counts what the engine's cache is made of, too (usable_gpu).
PlanLimits limits_of_rank(const TrainConfig& config, int64_t gpu, const std::string& out, bool resumed,
                          const Ranks& ranks) {
  PlanLimits limits = limits_here(out);
  if (resumed || !ranks.leads()) limits.disk_free = 0;
  if (config.device != "cpu") {
    limits.memory = usable_gpu(gpu);
    limits.memory_free = 0;
    limits.whose = str("of this GPU's ", human(gpu), " a training may take");
  } else if (const int64_t among = ranks.place().on_host; among > 1) {
    limits.memory /= among;
    limits.memory_free /= among;
    limits.whose = str("of this host's memory each of its ", among, " ranks has");
  }
  return limits;
}

// A GPU's host has the masters and moments of each of its ranks.
void check_host(const MemoryPlan& plan, int64_t among) {
  const int64_t host = machine_memory().total / std::max<int64_t>(among, 1);
  if (!plan.offloads || host <= 0 || plan.host <= host) return;
  throw Error(ErrorKind::limit,
              str("update.offload: masters and moments take ", human(plan.host), " of the host's memory, of which ",
                  among > 1 ? str("each of its ", among, " ranks has ") : "there are ", human(host),
                  "; set optimizer.moments to bf16 or int8, or use more ranks"));
}

}  // namespace

RunPlan plan_run(const TrainConfig& config, const std::string& out, const RunDirectory* resumed, bool allow_over_plan,
                 const Ranks& ranks) {
  RunPlan run;
  run.slots.max_slots = config.rollout.max_slots;
  run.shard = config.update.gradients_by_owner() ? Shard::gradients : Shard::moments;
  const bool own = resumed != nullptr && exists(path_join(resumed->model_files(), "config.json"));
  run.models = planned_models(config, own ? resumed->model_files() : "");
  run.models.ranks = ranks.size();
  const int64_t gpu = memory_of_device(config, ranks);
  if (gpu > 0) {
    run.models.gpu = usable_gpu(gpu);
    run.models.driver = driver_memory({.memory = gpu}, ranks.size(), config.update.reduce == Reduce::micro);
  }
  const MemoryPlan plan = plan_memory(config, run.models);
  const PlanLimits limits = limits_of_rank(config, gpu, out, resumed != nullptr, ranks);
  if (!allow_over_plan) {
    if (gpu > 0) check_host(plan, ranks.place().on_host);
    check_plan(plan, config, run.models, limits);
  } else if (limits.memory > 0 && plan.peak() > limits.memory) {
    warn(str(limits.whose, " ", human(limits.memory), ": less than the plan (--allow-over-plan)"));
  }
  run.offload = plan.offloads;
  if (plan.slots > 0 && !config.rollout.served()) {
    run.slots.max_slots = plan.slots;
    run.slots.cache_tokens = plan.cache_tokens;
  }
  run.memory = plan.peak();
  run.words = str("peak ", human(plan.peak()), ", in the phase ", plan.phases[plan.peak_phase()], "; ",
                  gpu > 0 ? str(limits.whose, " ", human(limits.memory)) : str(human(limits.memory_free), " free"));
  run.device = parse_device(device_of(config, ranks, visible_cuda_devices()));
  return run;
}

std::string out_of_memory_words(const RunPlan& run, const TrainConfig& config, const std::string& text) {
  const auto less = static_cast<int64_t>(0.9 * static_cast<double>(run.memory));
  const std::string nearest = nearest_fitting(remedies(config, run.models, less), less);
  return str(text, "; at: ", activity().what, "; ", run.words, "; ",
             nearest.empty() ? "use a smaller model or shorter responses" : str("what takes less: ", nearest),
             ", or end what else uses the GPU");
}

}  // namespace ucas
