// Which settings bring the peak of a plan down, and the error where it exceeds the machine.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "config/plan/plan.h"
#include "rollout/sampling/kv_budget.h"

namespace ucas {

namespace {

constexpr double kLeastSaved = 0.01;  // of the peak, else a change is not worth its words

std::string bytes_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Makes the next change of its kind to a config; "" where there is none left.
using Change = std::function<std::string(TrainConfig&)>;

Change set(const char* key, const char* value) {
  return [=](TrainConfig& c) {
    ucas::apply(c, {{key, value, "a plan's remedy", true}});
    return str(key, " = ", value);
  };
}

// Not below the longest sequence, which is alone in its micro-batch.
std::string halve_micro_batch(TrainConfig& c) {
  const int64_t longest = c.data.max_prompt_length + c.rollout.response_length;
  const int64_t half = std::max(c.update.micro_batch_tokens / 2, longest);
  if (half >= c.update.micro_batch_tokens) return "";
  c.update.micro_batch_tokens = half;
  return str("update.micro_batch_tokens = ", half);
}

std::string halve_slots(TrainConfig& c) {
  const int64_t slots =
      c.rollout.max_slots > 0 ? c.rollout.max_slots : std::min(kMostSlots, c.gen_batch() * c.rollout.n);
  if (slots <= 1) return "";
  c.rollout.max_slots = slots / 2;
  return str("rollout.max_slots = ", slots / 2);
}

// From what changes no result to what does. What a config has already lowers no peak, and is passed over.
std::vector<Change> changes(const TrainConfig& config, const PlannedModels& models, bool untried) {
  const bool moves = config.dtype == Dtype::bf16 && config.reference.moves();
  std::vector<Change> list = {set("update.recompute", "keep_attention"), set("update.recompute", "block")};
  if (models.ranks > 1) list.push_back(set("update.shard", "gradients"));
  if (models.gpu > 0 && untried && !moves) list.push_back(set("update.offload", "optimizer"));
  for (const Change& change :
       {Change(halve_micro_batch), Change(halve_slots), set("optimizer.moments", "bf16"),
        set("optimizer.moments", "int8"), set("dtype", "bf16"), config.lora.on() ? Change() : set("lora.rank", "16")}) {
    if (change) list.push_back(change);
  }
  return list;
}

int64_t peak_of(const TrainConfig& config, PlannedModels models) {
  const LoraConfig own = models.options.lora;
  models.options = config.model_options();
  if (models.own_adapter) models.options.lora = own;
  if (models.options.lora.on()) models.options.trained = Trained::adapter;
  return plan_memory(config, models).peak();
}

// The same kind of change again and again, as long as it lowers the peak and the peak does not fit.
std::optional<Remedy> repeated(const Change& change, TrainConfig& config, const PlannedModels& models, int64_t limit) {
  std::optional<Remedy> remedy;
  const TrainConfig before = config;
  int64_t peak = peak_of(config, models);
  const int64_t least = peak - static_cast<int64_t>(kLeastSaved * static_cast<double>(peak));
  while (peak > limit) {
    TrainConfig next = config;
    const std::string setting = change(next);
    if (setting.empty()) break;
    const int64_t lowered = peak_of(next, models);
    if (lowered >= peak) break;
    config = next;
    peak = lowered;
    remedy = Remedy{.setting = setting, .alone = peak, .together = peak};
  }
  if (peak <= least) return remedy;
  config = before;
  return std::nullopt;
}

}  // namespace

int64_t parse_memory(const std::string& text) {
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
  throw Error(ErrorKind::usage,
              str("--memory ", printable(text), ": expected a size such as 16GiB, 500MB or a number of bytes"));
}

std::vector<Remedy> remedies(const TrainConfig& config, const PlannedModels& models, int64_t limit, bool untried) {
  std::vector<Remedy> found;
  TrainConfig together = config;
  int64_t peak = peak_of(config, models);
  if (peak <= limit) return found;
  const int64_t target = with_spare(limit);
  for (const Change& change : changes(config, models, untried)) {
    if (peak <= target) break;
    TrainConfig alone = config;
    const std::optional<Remedy> by_itself = repeated(change, alone, models, target);
    const std::optional<Remedy> with_others = repeated(change, together, models, target);
    if (!with_others && !by_itself) continue;
    const Remedy& named = with_others ? *with_others : *by_itself;
    if (with_others) peak = with_others->together;
    found.push_back({named.setting, by_itself ? by_itself->alone : peak_of(config, models), peak});
  }
  return found;
}

std::string nearest_fitting(const std::vector<Remedy>& remedies, int64_t limit) {
  const int64_t target = with_spare(limit);
  for (const Remedy& r : remedies) {
    if (r.alone <= target) return str(r.setting, " (peak ", bytes_text(r.alone), ")");
  }
  if (remedies.empty() || remedies.back().together > target) return "";
  std::vector<std::string> settings;
  const auto key = [](const std::string& setting) { return setting.substr(0, setting.find(' ')); };
  for (const Remedy& r : remedies) {
    std::erase_if(settings, [&](const std::string& earlier) { return key(earlier) == key(r.setting); });
    settings.push_back(r.setting);
  }
  return str(join(settings, ", "), " (peak ", bytes_text(remedies.back().together), ")");
}

PlanLimits limits_here(const std::string& directory) {
  const MachineMemory memory = machine_memory();
  PlanLimits limits{.memory = memory.total, .memory_free = memory.free};
  limits.whose = memory.limited ? "the control group's limit is" : "this machine has";
  std::filesystem::path path = std::filesystem::absolute(directory.empty() ? "." : directory);
  while (!exists(path.string()) && path.has_relative_path()) path = path.parent_path();
  limits.disk_free = free_space(path.string());
  return limits;
}

void check_plan(const MemoryPlan& plan, const TrainConfig& config, const PlannedModels& models,
                const PlanLimits& limits) {
  if (limits.memory > 0 && plan.peak() > limits.memory) {
    const std::string nearest = nearest_fitting(remedies(config, models, limits.memory), limits.memory);
    throw Error(ErrorKind::limit,
                str("the peak would be about ", bytes_text(plan.peak()), ", in the phase ", plan.peak_words(3), "; ",
                    limits.whose, " ", bytes_text(limits.memory), "; ",
                    nearest.empty() ? "no setting makes it fit: use a smaller model or shorter responses"
                                    : str("what fits: ", nearest),
                    " (ucas plan shows all)"));
  }
  if (limits.disk_free > 0 && plan.disk.total() > limits.disk_free) {
    throw Error(ErrorKind::limit,
                str("the run would take about ", bytes_text(plan.disk.total()), " of disk (", plan.disk.checkpoints,
                    " checkpoints of ", bytes_text(plan.disk.checkpoint), "), ", bytes_text(limits.disk_free),
                    " are free; make room, or keep fewer (train.keep)"));
  }
}

}  // namespace ucas
