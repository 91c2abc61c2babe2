#include "config/plan/plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/text/json.h"
#include "config/plan/model_memory.h"
#include "config/plan/step_time.h"
#include "hf/peft.h"
#include "results/table.h"

namespace ucas {

namespace {

enum PhaseIndex : size_t { kLoad, kGenerate, kScore, kLearn, kUpdate, kSave, kPhases };

// Measured where there is nothing else: a training of a model of a few KB.
constexpr int64_t kProgram = int64_t{128} << 20;     // code and data of LibTorch and of its GEMMs
constexpr int64_t kPerThread = int64_t{10} << 20;    // buffers of GEMMs
constexpr double kSlack = 0.02;                      // blocks are rounded up, and holes between them stay
constexpr int64_t kPerTokenizerByte = 12;            // tables of a tokenizer, by the size of tokenizer.json
constexpr int64_t kWriteBuffer = int64_t{12} << 20;  // of numbers converted while a checkpoint is written and read back
// Of a token: what the sampler says of it, with the room in which vectors grow, and its text; then the batch's arrays,
// advantages and what a method computes on the way.
constexpr int64_t kSampledToken = 40, kBatchToken = 64, kStoredToken = 400;
constexpr int64_t kSignalLine = 130, kResponseLine = 5;  // on disk, a token

constexpr const char* kOfHost[] = {"program", "tokenizer", "responses", "writing", "freed", "slack"};

int64_t largest_of(const std::vector<int64_t>& values) { return *std::max_element(values.begin(), values.end()); }

class Planner {
 public:
  Planner(const TrainConfig& config, const PlannedModels& models, bool offload)
      : c_(config),
        m_(models),
        needs_(config.needs()),
        threads_(config.threads > 0 ? config.threads : usable_cores()),
        ranks_(models.ranks),
        gpu_(models.gpu),
        offload_(offload) {
    longest_ = c_.data.max_prompt_length + c_.rollout.response_length;
    step_responses_ = (c_.data.train_batch_size + c_.gen_batch()) * c_.rollout.n;
    plan_.phases = {"load", "generate", "score", "learn", "update", "save"};
    plan_.offloads = offload;
  }

  MemoryPlan made() {
    permanent();
    auxiliary_models();
    generation();
    // After the KV cache, whose room a training takes from its rule alone (usable_gpu).
    always("device", m_.driver,
           ranks_ > 1 ? "CUDA context, cuBLAS, NCCL: published" : "CUDA context, cuBLAS: published");
    passes();
    saving();
    allocator();
    std::erase_if(plan_.parts, [](const PlanPart& part) { return largest_of(part.bytes) == 0; });
    if (!needs_.critic && !needs_.prm) drop_phase(kLearn);
    if (gpu_ > 0) std::erase_if(plan_.parts, [](const PlanPart& part) { return of_host(part.name); });
    disk();
    return plan_;
  }

 private:
  std::vector<int64_t>& part(const std::string& name, const std::string& note = "") {
    plan_.parts.push_back({name, note, std::vector<int64_t>(kPhases)});
    return plan_.parts.back().bytes;
  }
  void always(const std::string& name, int64_t bytes, const std::string& note = "") {
    part(name, note).assign(kPhases, bytes);
  }
  // What each rank keeps its share of, and never has more of.
  void shared_kept(const std::string& name, int64_t bytes, const std::string& note) {
    always(name, share(bytes), ranks_ > 1 ? str(note, ", 1 / ", ranks_) : note);
  }
  // The same of what may be offloaded. A GPU then has what was loaded until the optimizer is made.
  void optimizer_kept(const std::string& name, int64_t bytes, const std::string& note, bool loaded) {
    shared_kept(name, bytes, offload_ ? note + ", on the host" : note);
    if (!offload_) return;
    plan_.host += share(bytes);
    if (gpu_ == 0) return;
    std::vector<int64_t>& kept = plan_.parts.back().bytes;
    kept.assign(kPhases, 0);
    if (loaded) kept[kLoad] = share(bytes);
  }
  void drop_phase(size_t phase) {
    plan_.phases.erase(plan_.phases.begin() + static_cast<std::ptrdiff_t>(phase));
    for (PlanPart& p : plan_.parts) p.bytes.erase(p.bytes.begin() + static_cast<std::ptrdiff_t>(phase));
  }

  static bool of_host(const std::string& part) { return std::ranges::find(kOfHost, part) != std::end(kOfHost); }
  int64_t share(int64_t all) const { return (all + ranks_ - 1) / ranks_; }

  bool is_bf16() const { return c_.dtype == Dtype::bf16; }
  void permanent() {
    policy_ = model_memory(m_.policy, m_.options, &c_.optimizer);
    always("program", kProgram + threads_ * kPerThread, str("LibTorch, with the buffers of ", threads_, " threads"));
    always("tokenizer", m_.tokenizer_bytes * kPerTokenizerByte);
    always("weights", policy_.weights, str(grouped(m_.policy.parameter_count()), " parameters, ", word_of(c_.dtype)));
    optimizer_kept("masters", policy_.masters, "f32 of the trained matrices", true);
    always("adapter", policy_.adapter, str("rank ", m_.options.lora.rank));
    const std::string trained = str("of ", grouped(policy_.trained), " trained");
    const Gradients kept = gradients_of(policy_, c_.update.shard);
    part("gradients", str("f32, ", trained, kept.note))[kUpdate] = kept.always + kept.in_a_pass;
    part("exchange", "gradients on their way to another rank")[kUpdate] = kept.exchanged;
    optimizer_kept("moments", policy_.moments, str(word_of(c_.optimizer.moments), ", ", trained), false);
    if (offload_) {
      auto& buffers = part("offload", "parts of masters and moments between host and device");
      for (size_t phase : {kGenerate, kScore, kLearn, kUpdate, kSave}) buffers[phase] = policy_.offload;
    }
    if (is_bf16()) part("reading", "the largest tensor in f32")[kLoad] = 4 * policy_.largest;
  }

  // Of what a model trains: what a rank keeps between updates of a step, what a backward pass adds to it, and
  // communication buffers (sharding/sharded_gradients.h).
  struct Gradients {
    int64_t always = 0, in_a_pass = 0, exchanged = 0;
    std::string note = "";
  };
  Gradients gradients_of(const ModelMemory& m, Shard shard) const {
    const bool micro = c_.update.reduce == Reduce::micro, several = ranks_ > 1;
    if (!several) return {m.gradients, micro ? m.passing : 0, 0, micro ? ", and a block's of a micro-batch" : ""};
    if (!micro && shard == Shard::moments) return {.always = m.gradients};
    const int64_t own = share(m.gradients), all = shard == Shard::moments ? m.gradients : m.passing;
    const std::string note =
        str(", 1 / ", ranks_, shard == Shard::moments ? " and all of a micro-batch" : " and a block");
    if (!micro) return {own, all - share(all), 0, note};
    return {own, all, 2 * std::min(all, 4 * kExchangeElements), note};
  }

  // Auxiliary models, with what trains them.
  void auxiliary_models() {
    if (needs_.reference) {
      const bool shared = c_.lora.on() && c_.lora.modules_to_save.empty() && !m_.own_adapter;
      if (c_.reference.moves()) {
        const ModelMemory m = model_memory(m_.policy, m_.options, nullptr);
        always("reference", m.weights + m.adapter, "moved to the policy, and saved");
        shared_kept("its masters", m.masters, "f32");
        auxiliary_state_ += 4 * m.trained;
      } else if (!shared) {
        always("reference", model_memory(m_.policy, inference(c_.dtype), nullptr).kept(), "frozen");
      }
    }
    if (needs_.critic) auxiliary("critic", m_.critic, needs_.critic->optimizer, false);
    if (needs_.teacher) always("teacher", model_memory(m_.teacher, inference(c_.dtype), nullptr).kept(), "frozen");
    if (!needs_.prm) return;
    auxiliary("reward model", m_.prm, needs_.prm->optimizer, true);
    always("its reference", model_memory(m_.prm, inference(c_.dtype), nullptr).kept(), "frozen");
  }
  void auxiliary(const std::string& name, const ModelConfig& model, const OptimizerConfig& optimizer, bool head) {
    const ModelMemory m = model_memory(model, c_.auxiliary_model_options(), &optimizer, head);
    auto& bytes = part(name, "weights, gradients, moments");
    const int64_t masters = m.masters - share(m.masters), moments = m.moments - share(m.moments);  // of other ranks
    const Gradients gradients = gradients_of(m, c_.update.reduce == Reduce::micro ? c_.update.shard : Shard::moments);
    bytes.assign(kPhases, m.kept() - m.gradients - masters - moments);
    bytes[kLearn] += gradients.always + gradients.in_a_pass + gradients.exchanged;
    auxiliary_state_ += 4 * m.trained + m.moments;
  }

  void generation() {
    EngineConfig engine;
    engine.max_slots = c_.rollout.max_slots;
    const int64_t prompts = share(c_.gen_batch());
    int64_t samples = c_.gen_batch() * c_.rollout.n;
    if (c_.train.test_freq > 0) samples = std::max(samples, kMostSlots);
    samples = share(samples);
    const int64_t prompt = c_.data.max_prompt_length, response = c_.rollout.response_length;
    // A rank that takes what others have not begun (rollout/shared_rollout.cpp) knows only how long both are together.
    const LongestTokens longest =
        ranks_ > 1 ? LongestTokens{longest_, longest_, longest_} : LongestTokens{longest_, prompt, response};
    // The engine's rule counts heads without the padding of value rows (rollout/engine.cpp).
    const int64_t width = m_.policy.num_hidden_layers * m_.policy.num_key_value_heads * m_.policy.head_dim;
    const int64_t token_bytes = 2 * width * (is_bf16() ? 2 : 4);
    KvBudget room = kv_budget(engine, prompts, samples, longest, token_bytes, free_gpu());
    if (room.shares() && c_.train.test_freq > 0) {  // whose prompts have one response each
      const int64_t tests = share(kMostSlots);
      const KvBudget of_tests = kv_budget(engine, tests, tests, longest, token_bytes);
      if (of_tests.held() > room.held()) room = of_tests;
    }
    cache_ = cache_bytes(m_.policy, c_.dtype, room);
    if (gpu_ > 0) {
      cache_ = std::min(cache_, room.tokens * token_bytes);
      plan_.slots = room.slots;
      plan_.cache_tokens = room.tokens;
    }
    const std::string held =
        room.shares() ? str(room.slots, " responses of ", grouped(response), ", ", room.prompts, " prompts of ",
                            grouped(room.prompt), " tokens")
                      : str(room.slots, " + ", room.prompt_slots, " slots of ", grouped(longest_), " tokens");
    part("KV cache", held)[kGenerate] = cache_;
    const bool cut = c_.rollout.sampling().truncates();
    instants_[kGenerate] = generate_memory(m_.policy, m_.options, room, engine, prompt, threads_, cut, gpu_ > 0);
  }

  // What the parts so far, which are permanent, leave of a GPU; 0 on the CPU.
  int64_t free_gpu() const {
    if (gpu_ == 0) return 0;
    int64_t taken = 0;
    for (const PlanPart& p : plan_.parts) taken += of_host(p.name) ? 0 : p.bytes[kGenerate];
    return std::max<int64_t>(gpu_ - taken, 1);
  }

  PassShape shape(int64_t responses, bool head = true) const {
    const int64_t rows = std::min(std::max(c_.update.micro_batch_tokens, longest_), responses * longest_);
    return {.rows = rows, .length = longest_, .threads = threads_, .head = head, .gpu = gpu_ > 0};
  }

  void larger(size_t phase, const PassMemory& pass) {
    if (pass.total() > instants_[phase].total()) instants_[phase] = pass;
  }

  void passes() {
    const int64_t all = c_.data.train_batch_size * c_.rollout.n;
    const int64_t prompts = c_.data.train_batch_size,
                  parts = (prompts + c_.update.mini_batch_size - 1) / c_.update.mini_batch_size;
    const int64_t mini = (prompts + parts - 1) / parts * c_.rollout.n;
    larger(kScore, forward_memory(m_.policy, m_.options, shape(all)));
    PassShape update = shape(mini);
    larger(kUpdate, backward_memory(m_.policy, m_.options, update));
    if (policy_.muon > instants_[kUpdate].total()) {
      instants_[kUpdate] = {.scratch = policy_.muon, .note = "one matrix under Muon"};
    }
    const ModelOptions options = c_.auxiliary_model_options();
    if (needs_.critic) {
      const int64_t share = (all + needs_.critic->updates - 1) / needs_.critic->updates;
      larger(kScore, forward_memory(m_.critic, options, shape(all, false)));
      larger(kLearn, backward_memory(m_.critic, options, shape(share, false)));
    }
    if (needs_.prm) {
      larger(kScore, forward_memory(m_.prm, options, shape(all)));
      larger(kLearn, backward_memory(m_.prm, options, shape(all)));
    }
    if (needs_.teacher) larger(kScore, forward_memory(m_.teacher, inference(c_.dtype), shape(all)));
    const PassMemory& most = *std::max_element(instants_ + kScore, instants_ + kSave, [](const auto& a, const auto& b) {
      return a.activations < b.activations;
    });
    at_once("activations", most.note, &PassMemory::activations);
    at_once("scratch", "temporary buffers", &PassMemory::scratch);
    at_once("logits", str("vocabulary ", grouped(m_.policy.vocab_size)), &PassMemory::logits);
    step_data();
  }
  void at_once(const std::string& name, const std::string& note, int64_t PassMemory::* bytes) {
    auto& of = part(name, note);
    for (size_t p = 0; p < kPhases; ++p) of[p] = instants_[p].*bytes;
  }

  void step_data() {
    const int64_t tokens = step_responses_ * c_.rollout.response_length;
    auto& bytes = part("responses", str(grouped(tokens), " tokens of a step at most, with their signals"));
    bytes[kGenerate] = tokens * kSampledToken;
    int64_t extra = 0;
    for (const TokenSignal& signal : needs_.signals) extra += signal.compute ? 4 : 0;
    for (const NeededModel& model : needs_.models()) extra += 4 * model.held;
    for (size_t phase : {kScore, kLearn, kUpdate}) bytes[phase] = tokens * (kBatchToken + extra);
    bytes[kSave] = bytes[kUpdate];
  }

  void saving() {
    auto& bytes = part("writing", "checkpoint write buffer");
    bytes[kSave] = kWriteBuffer;
    if (c_.optimizer.moments == MomentType::bf16) bytes[kSave] += 4 * policy_.largest_trained;
    if (ranks_ > 1 && is_bf16()) bytes[kSave] += 4 * policy_.largest_trained;  // a master of another rank
  }

  // What an update has freed stays with the process where its tensors are small, and serves later phases first.
  void allocator() {
    const int64_t freed = std::max(instants_[kUpdate].pooled, instants_[kLearn].pooled);
    auto& bytes = part("freed", "freed but held by the allocator");
    for (size_t phase : {kGenerate, kScore, kSave}) {
      const int64_t own = instants_[phase].total() + (phase == kGenerate && cache_ / 2 < kPooledBelow ? cache_ : 0);
      bytes[phase] = std::max<int64_t>(freed - own, 0);
    }
    std::vector<int64_t> slack(kPhases);
    for (size_t phase = 0; phase < kPhases; ++phase) {
      const int64_t rest = plan_.total(phase) - plan_.parts.front().bytes[phase];
      slack[phase] = static_cast<int64_t>(kSlack * static_cast<double>(rest));
    }
    part("slack", "2 % of all but the program") = slack;
  }

  void disk() {
    const bool adapter = m_.options.lora.on();
    const bool narrow = !adapter && m_.policy.torch_dtype != "float32";
    DiskPlan& d = plan_.disk;
    d.checkpoint = policy_.stored * (narrow ? 2 : 4) + policy_.moments + (narrow ? 4 * policy_.trained : 0) +
                   auxiliary_state_ + m_.tokenizer_bytes + (1 << 20);
    const RunConfig& t = c_.train;
    d.steps_known = !c_.uses_passes();
    const int64_t steps = d.steps_known ? std::max<int64_t>(t.steps, 1) : 1;
    const int64_t saves = t.save_freq == 0 ? 1 : d.steps_known ? (steps + t.save_freq - 1) / t.save_freq : t.keep + 1;
    d.checkpoints = std::min(saves, t.keep + 1) + (t.best_metric.empty() ? 0 : 1);
    const int64_t tokens = c_.data.train_batch_size * c_.rollout.n * c_.rollout.response_length;
    const int64_t signalled = std::min(tokens, kStoredSignalTokens);
    const int64_t files = t.stored_signals > 0 ? 1 + steps / t.stored_signals : 0;
    const int64_t shown = t.stored_prompts * std::min(t.stored_responses, c_.rollout.n) * c_.rollout.response_length;
    d.records = files * signalled * kSignalLine + steps * (shown * kResponseLine + 4096);
  }

  const TrainConfig& c_;
  const PlannedModels& m_;
  const Needs needs_;
  const int64_t threads_, ranks_, gpu_;
  const bool offload_;
  int64_t longest_ = 0, step_responses_ = 0, auxiliary_state_ = 0, cache_ = 0;
  ModelMemory policy_;
  PassMemory instants_[kPhases];
  MemoryPlan plan_;
};

}  // namespace

PlannedModels planned_models(const TrainConfig& config, const std::string& policy) {
  PlannedModels models;
  if (config.model.empty()) {
    throw Error(ErrorKind::config, "model is empty: give --model DIR, a Hugging Face checkpoint directory");
  }
  const std::string directory = policy.empty() ? config.model : policy;
  models = planned_models(config, read_model_config(directory));
  if (is_adapter(config.model)) {
    models.own_adapter = true;
    models.options.lora = find_adapter(config.model)->lora;
    models.options.trained = Trained::adapter;
  }
  const std::string tokenizer = path_join(directory_with(directory, "tokenizer.json"), "tokenizer.json");
  if (exists(tokenizer)) models.tokenizer_bytes = file_size(tokenizer);
  return models;
}

PlannedModels planned_models(const TrainConfig& config, const ModelConfig& policy) {
  PlannedModels models;
  models.policy = policy;
  models.options = config.model_options();
  if (models.options.lora.on()) models.options.trained = Trained::adapter;
  const Needs needs = config.needs();
  const auto auxiliary = [&](const std::string& other) {
    return other.empty() || other == config.model ? models.policy : read_model_config(other);
  };
  models.critic = auxiliary(needs.critic ? needs.critic->model : "");
  models.prm = auxiliary(needs.prm ? needs.prm->model : "");
  models.teacher = auxiliary(needs.teacher.value_or(""));
  return models;
}

int64_t MemoryPlan::total(size_t phase) const {
  int64_t sum = 0;
  for (const PlanPart& part : parts) sum += part.bytes[phase];
  return sum;
}

size_t MemoryPlan::peak_phase() const {
  size_t peak = 0;
  for (size_t phase = 1; phase < phases.size(); ++phase) {
    if (total(phase) > total(peak)) peak = phase;
  }
  return peak;
}

std::string MemoryPlan::peak_words(size_t count) const {
  const size_t phase = peak_phase();
  std::vector<const PlanPart*> order;
  for (const PlanPart& part : parts) order.push_back(&part);
  std::ranges::stable_sort(order, [&](const auto* a, const auto* b) { return a->bytes[phase] > b->bytes[phase]; });
  std::vector<std::string> words;
  for (const PlanPart* part : order) {
    if (words.size() < count && part->bytes[phase] > 0) {
      words.push_back(str(part->name, " ", human_bytes(static_cast<double>(part->bytes[phase]))));
    }
  }
  return str(phases[phase], " (", join(words, ", "), ", ...)");
}

MemoryPlan plan_memory(const TrainConfig& config, const PlannedModels& models) {
  const Offload offload = config.update.offload;
  const MemoryPlan plan = Planner(config, models, offload == Offload::optimizer).made();
  if (offload != Offload::automatic || models.gpu == 0 || plan.peak() <= models.gpu) return plan;
  const MemoryPlan offloaded = Planner(config, models, true).made();
  return offloaded.peak() <= models.gpu ? offloaded : plan;
}

namespace {

std::string cell(int64_t bytes) { return bytes == 0 ? "-" : human_bytes(static_cast<double>(bytes)); }

std::string verdict(const MemoryPlan& plan, const PlanLimits& limits) {
  const int64_t peak = plan.peak();
  std::string text;
  if (limits.memory > 0) {
    text = str(limits.whose, " ", cell(limits.memory),
               limits.memory_free > 0 ? str(", ", cell(limits.memory_free), " of it free") : "", ": ");
    if (peak > limits.memory) {
      text += "does not fit";
    } else if (limits.memory_free > 0 && peak > limits.memory_free) {
      text += "fits only when other programs give memory back";
    } else {
      text += "fits";
    }
  }
  return text;
}

std::string disk_text(const DiskPlan& disk, const PlanLimits& limits) {
  return str(cell(disk.total()), ": ", disk.checkpoints, disk.checkpoints == 1 ? " checkpoint of " : " checkpoints of ",
             cell(disk.checkpoint), ", records ", cell(disk.records), disk.steps_known ? "" : " for the first step",
             limits.disk_free > 0 ? str("; ", cell(limits.disk_free),
                                        " free: ", disk.total() > limits.disk_free ? "does not fit" : "fits")
                                  : "");
}

}  // namespace

std::string plan_text(const MemoryPlan& plan, const PlanHead& head, const PlanLimits& limits,
                      const std::vector<Remedy>& remedies) {
  Table table;
  table.head = {"part"};
  for (const std::string& phase : plan.phases) table.head.emplace_back(phase);
  table.head.emplace_back("");
  table.align = "l" + std::string(plan.phases.size(), 'r') + "l";
  for (const PlanPart& part : plan.parts) {
    std::vector<Cell>& row = table.rows.emplace_back().cells;
    row.emplace_back(part.name);
    for (int64_t bytes : part.bytes) row.emplace_back(cell(bytes));
    row.emplace_back(part.note);
  }
  std::vector<Cell>& sums = table.rows.emplace_back().cells;
  sums.emplace_back("in all");
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) sums.emplace_back(cell(plan.total(phase)));
  sums.emplace_back("");
  std::string text = head.title + "\n";
  for (const std::string& note : head.notes) text += str("note: ", note, "\n");
  text += str("\n", table.text("  "), "\n");
  text += str("peak    ", cell(plan.peak()), " in the phase ", plan.peak_words(), "\n");
  const std::string said = verdict(plan, limits);
  if (!said.empty()) text += str("memory  ", said, "\n");
  if (plan.offloads)
    text += str("host    ", cell(plan.host), " of masters and moments (update.offload), pinned where there is a GPU\n");
  text += str("disk    ", disk_text(plan.disk, limits), "\n");
  if (remedies.empty()) return text;
  Table changes{.head = {"what lowers the peak", "alone", "with those above"}};
  for (const Remedy& r : remedies) changes.rows.push_back({r.setting, cell(r.alone), cell(r.together)});
  return str(text, "\n", changes.text("  "), "\n");
}

std::string plan_json(const MemoryPlan& plan, const PlanHead& head, const PlanLimits& limits,
                      const std::vector<Remedy>& remedies, const TimePlan& time) {
  OrderedJson json;
  json["title"] = head.title;
  json["notes"] = head.notes;
  json["peak"] = plan.peak();
  json["phase"] = plan.phases[plan.peak_phase()];
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) json["phases"][plan.phases[phase]] = plan.total(phase);
  json["parts"] = OrderedJson::array();
  for (const PlanPart& part : plan.parts) {
    OrderedJson row;
    row["part"] = part.name;
    row["note"] = part.note;
    for (size_t phase = 0; phase < plan.phases.size(); ++phase) row["bytes"][plan.phases[phase]] = part.bytes[phase];
    json["parts"].push_back(std::move(row));
  }
  json["memory"] = limits.memory;
  json["memory_free"] = limits.memory_free;
  json["fits"] = limits.memory == 0 || plan.peak() <= limits.memory;
  json["offload"] = plan.offloads;
  json["host"] = plan.host;
  json["disk"] = plan.disk.total();
  json["disk_checkpoint"] = plan.disk.checkpoint;
  json["disk_free"] = limits.disk_free;
  json["remedies"] = OrderedJson::array();
  for (const Remedy& r : remedies) {
    OrderedJson row;
    row["setting"] = r.setting;
    row["alone"] = r.alone;
    row["together"] = r.together;
    json["remedies"].push_back(std::move(row));
  }
  for (const auto& [name, seconds, note] : time.phases) json["time"][name] = seconds;
  json["time"]["step"] = time.step();
  json["device_hours"] = time.device_hours();
  return json_text(json, 2) + "\n";
}

}  // namespace ucas
