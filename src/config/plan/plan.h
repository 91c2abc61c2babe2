// What a training will take, before anything is loaded: memory by part and by phase of a step, and disk. From the sizes
// of config/plan/model_memory.h, for the CPU. It is what the largest micro-batch and the longest responses need;
// lengths of problems are not read. Fed by a config and the config.json of its model; read by `ucas plan` and by
// train/loop/start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "hf/model_config.h"

namespace ucas {

// What is known besides the config: of the files of the models, and where they will be trained.
struct PlannedModels {
  ModelConfig policy;
  ModelOptions options;      // of the policy, with the adapter that its directory brings
  bool own_adapter = false;  // it does bring one
  ModelConfig critic, prm;   // the policy's where config names none
  ModelConfig teacher;
  int64_t tokenizer_bytes = 0;  // of tokenizer.json
  int64_t ranks = 1;            // processes: each samples its share and keeps its share of the moments (ZeRO-1)
  // Bytes that tensors may take of a GPU: keys and values take 3/4 of what stays free, the host's parts are left out.
  int64_t gpu = 0;
  int64_t driver = 0;  // bytes of a GPU that no tensor has: driver_memory() of config/plan/step_time.h
};
// Reads the directories that `config` names: sizes, no weights. Errors as the loader's. `policy`: where the policy's
// config.json is, if not in config.model.
PlannedModels planned_models(const TrainConfig& config, const std::string& policy = "");
// The same with a policy of which no files are here.
PlannedModels planned_models(const TrainConfig& config, const ModelConfig& policy);

struct PlanPart {
  std::string name, note;
  std::vector<int64_t> bytes;  // by phase
};

struct DiskPlan {
  int64_t checkpoint = 0;   // bytes of one
  int64_t checkpoints = 0;  // of them at once, the one in the making included
  int64_t records = 0;      // signals and responses of steps
  bool steps_known = true;  // otherwise `records` are those of one step
  int64_t total() const { return checkpoint * checkpoints + records; }
};

struct MemoryPlan {
  std::vector<std::string> phases;
  std::vector<PlanPart> parts;
  DiskPlan disk;
  // Of a GPU: responses decoded at once and tokens that its cache holds, which are the engine's in the training, too. 0
  // on the CPU.
  int64_t slots = 0, cache_tokens = 0;
  // update.offload: whether masters and moments are on the host, and how many bytes of it they take.
  bool offloads = false;
  int64_t host = 0;

  int64_t total(size_t phase) const;
  size_t peak_phase() const;
  int64_t peak() const { return total(peak_phase()); }
  // "the update (weights 149 MiB, moments 298 MiB, ...)": the largest parts at the peak.
  std::string peak_words(size_t parts = 4) const;
};

MemoryPlan plan_memory(const TrainConfig& config, const PlannedModels& models);

// A change that ends nearer to the limit than this is none: what a plan is off by, and what else a device holds, is
// more.
constexpr double kSpare = 0.03;
inline int64_t with_spare(int64_t limit) { return static_cast<int64_t>((1 - kSpare) * static_cast<double>(limit)); }

// A change of settings that lowers the peak: alone, and with those before it.
struct Remedy {
  std::string setting;              // "update.recompute = block"
  int64_t alone = 0, together = 0;  // peaks, bytes
};
// In the order in which they cost least, up to the first that fits into `limit` bytes, with_spare(), together with
// those before it; all there are if none does. None that lowers the peak by less than 1 %. `untried`: offload, too.
std::vector<Remedy> remedies(const TrainConfig& config, const PlannedModels& models, int64_t limit,
                             bool untried = true);
// One line: "update.recompute = block (peak 3.8 GiB)", the first that fits alone, else all together; "" if none.
std::string nearest_fitting(const std::vector<Remedy>& remedies, int64_t limit);

// What there is of memory and disk, bytes; 0: not known.
struct PlanLimits {
  int64_t memory = 0, memory_free = 0, disk_free = 0;
  std::string whose = "this machine has";
};
// Bytes of --memory: "16GiB", "1.5 GB", "800MB", "100000". Error(ErrorKind::usage) for anything else.
int64_t parse_memory(const std::string& text);
// Of this machine, and of the disk where `directory` is or will be.
PlanLimits limits_here(const std::string& directory);
// Throws Error(ErrorKind::limit) with the nearest settings if the peak or the disk is beyond.
void check_plan(const MemoryPlan& plan, const TrainConfig& config, const PlannedModels& models,
                const PlanLimits& limits);

struct PlanHead {
  std::string title;
  std::vector<std::string> notes;  // what was taken for granted: a model's known shape
};
std::string plan_text(const MemoryPlan& plan, const PlanHead& head, const PlanLimits& limits,
                      const std::vector<Remedy>& remedies);
struct TimePlan;  // config/plan/step_time.h
std::string plan_json(const MemoryPlan& plan, const PlanHead& head, const PlanLimits& limits,
                      const std::vector<Remedy>& remedies, const TimePlan& time);

}  // namespace ucas
