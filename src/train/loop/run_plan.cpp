#include "train/loop/run_plan.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "model/tensor/stream.h"
#include "plan/plan.h"
#include "rollout/policy.h"
#include "sampling/engine_room.h"

namespace ucas {

namespace {

std::string human(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// The ranks of a host divide its memory, as if each were the one that saves. Rank 0 alone writes; checkpoints that a
// run has already are not counted again.
PlanLimits limits_of_rank(const std::string& out, bool resumed, const Ranks& ranks) {
  PlanLimits limits = limits_here(out);
  if (resumed || !ranks.leads()) limits.disk_free = 0;
  if (const int64_t among = ranks.place().on_host; among > 1) {
    limits.memory /= among;
    limits.memory_free /= among;
    limits.whose = str("of this host's memory each of its ", among, " ranks has");
  }
  return limits;
}

void check_host(const MemoryPlan& plan) {
  const int64_t host = machine_memory().total;
  if (!plan.offloads || host <= 0 || plan.host <= host) return;
  throw Error(ErrorKind::limit,
              str("update.offload: masters and moments take ", human(plan.host), " of the host's memory, which has ",
                  human(host), "; set optimizer.moments to bf16 or int8, or use more ranks"));
}

}  // namespace

RunPlan plan_run(const TrainConfig& config, const std::string& out, const RunDirectory* resumed, bool allow_over_plan,
                 const Ranks& ranks) {
  const bool counted = config.device == "cuda" && !ranks.alone();
  RunPlan run;
  run.device = parse_device(counted ? device_of_rank(config.device, ranks.place().local, visible_cuda_devices())
                                    : config.device);
  run.slots.max_slots = config.rollout.max_slots;
  run.shard = config.update.gradients_by_owner() ? Shard::gradients : Shard::moments;
  run.offload = config.update.offload == Offload::optimizer;
  const bool own = resumed != nullptr && exists(path_join(resumed->model_files(), "config.json"));
  PlannedModels models = planned_models(config, own ? resumed->model_files() : "");
  models.ranks = ranks.size();
  if (!run.device.is_cpu()) {
    const int64_t total = memory_of(run.device).total;
    if (total == 0) return run;
    models.gpu = usable_gpu(total);
    const MemoryPlan plan = plan_memory(config, models);
    check_host(plan);
    run.offload = plan.offloads;
    if (config.rollout.served()) return run;
    run.slots.max_slots = plan.slots;
    run.slots.cache_tokens = plan.cache_tokens;
    return run;
  }
  const MemoryPlan plan = plan_memory(config, models);
  const PlanLimits limits = limits_of_rank(out, resumed != nullptr, ranks);
  if (!allow_over_plan) {
    check_plan(plan, config, models, limits);
  } else if (plan.peak() > limits.memory) {
    warn(str(limits.whose, " ", human(limits.memory), ": less than the plan (--allow-over-plan)"));
  }
  run.memory = plan.peak();
  run.words = str("peak ", human(plan.peak()), ", in the phase ", plan.phases[plan.peak_phase()], "; ",
                  human(limits.memory_free), " free");
  return run;
}

}  // namespace ucas
