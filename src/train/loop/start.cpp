#include "train/loop/start.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/process/machine.h"
#include "base/process/python_child.h"
#include "base/process/warning_counters.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "config/prompt_choice.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "hf/peft.h"
#include "kernels/dispatch.h"
#include "kernels/lm_head.h"
#include "model/tensor/stream.h"
#include "plan/step_time.h"
#include "records/run/environment.h"
#include "records/run/manifest.h"
#include "records/run/run_directory.h"
#include "rollout/engine.h"
#include "rollout/shared_rollout.h"
#include "sampling/engine_room.h"
#include "sharding/agreement.h"
#include "train/collect/carry_over.h"
#include "train/metrics/metrics.h"
#include "train/state/checkpoint.h"
#include "train/state/fingerprint.h"
#include "train/update/self_check.h"
#include "verify/sandbox/check.h"

namespace ucas {

namespace {

constexpr const char* kOverPlan = "allow-over-plan";

ProblemOptions options_of(const TrainConfig& config) {
  ProblemOptions options;
  options.columns = config.data.columns;
  options.bad_rows = config.data.skip_bad_rows ? BadRows::skip : BadRows::stop;
  return options;
}

// Of the data, for a function that is called with their columns as TRL and verl call it.
std::map<std::string, std::string> rows_for_reward(const TrainConfig& config) {
  if (config.reward.python.empty() || config.reward.python == kTaskScorers) return {};
  ProblemOptions options = options_of(config);
  options.labels = false;
  return read_source_rows(config.data.files, options);
}

TrainingSet load_set(const TrainConfig& config, const std::vector<std::string>& files, const Tokenizer& tokenizer,
                     const Template& form, int64_t limit, bool labels) {
  ProblemOptions options = options_of(config);
  options.columns_where_there = &files == &config.data.val_files;  // those may have the usual names
  options.labels = labels;
  std::vector<Problem> problems = read_problems(files, options);
  if (limit > 0 && limit < static_cast<int64_t>(problems.size())) problems.resize(static_cast<size_t>(limit));
  TrainingSet set;
  set.hash = content_hash(problems);
  PreparedPrompts prompts = prepare_prompts(form, problems, tokenizer, config.data.max_prompt_length);
  set.dropped = prompts.dropped;
  set.prompt = std::move(prompts.ids);
  for (int64_t index : prompts.problem) set.problems.push_back(std::move(problems[index]));
  if (set.dropped > 0) {
    count_warning(Warning::prompt, set.dropped);
    warn(str(set.dropped, " of ", set.dropped + set.size(),
             " prompts are longer than data.max_prompt_length = ", config.data.max_prompt_length, " tokens: left out"));
  }
  return set;
}

constexpr int64_t kScorersOwn = 1024;  // MiB of address space for the packages that scorers import

// The program that scores responses, with its arguments.
std::vector<std::string> scorer_words(const TrainConfig& config) {
  if (!config.reward.command.empty()) return {"/bin/sh", "-c", config.reward.command};
  if (config.reward.python != kTaskScorers) return python_words("reward", {config.reward.python});
  // Scorers of reasoning-gym evaluate what the model wrote: in the sandbox, and nowhere else.
  const code::CodeOptions& code = config.reward.code;
  const code::Sandbox sandbox(code);
  std::vector<std::string> arguments = {"score", launcher_of_forks(sandbox, "the scorers of reasoning-gym"),
                                        str(code.wall_seconds), str(code.cpu()),
                                        str((code.memory_mib + kScorersOwn) << 20)};
  arguments.insert(arguments.end(), config.data.files.begin(), config.data.files.end());
  return python_words("reasoning", arguments);
}

std::string hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

// Everything that does not depend on whether the run is fresh.
struct Parts {
  Policy policy;
  std::unique_ptr<Rollouter> rollout;
  ServedRollout* served = nullptr;  // the same
  EngineConfig engine;              // of a rollout here
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::unique_ptr<AuxiliaryModel>> auxiliary_models;
  Graders graders;
  TrainingSet data, validation;
  std::vector<int32_t> stop_ids;
};

// What a run is made of is said by its files and its version; of two commits of one version they may differ.
void check_program(const RunDirectory& run) {
  const std::string before = run.environment("version"), now = version_and_commit();
  if (before.empty() || before == now) return;
  const std::string text =
      str("resumed by ucas ", now, "; begun by ucas ", before, ": the result may differ from an uninterrupted run's");
  warn(text);
  if (run.writes()) add_remark(run.env_file(), text);
}

// What the run was begun with against what this program and this device give.
void check_engine(const EngineConfig& engine, const RunDirectory& run) {
  check_program(run);
  if (engine.cache_tokens == 0) return;
  const std::string slots = run.environment("rollout_slots"), tokens = run.environment("rollout_cache_tokens");
  if (slots.empty() || (slots == str(engine.max_slots) && tokens == str(engine.cache_tokens))) return;
  const std::string text = str("this GPU decodes ", engine.max_slots, " responses at once, ", engine.cache_tokens,
                               " tokens in its cache; the run was begun with ", slots, " and ", tokens,
                               ": what it samples from here on has other rounding");
  warn(text);
  if (run.writes()) add_remark(run.env_file(), text);
}

// What template and extract were left to, once the prompts are known; what was decided is in the config from then on.
void decide_extract(TrainConfig& config, const std::string& asked_template, const Template& form,
                    std::span<const Problem> problems) {
  PromptChoice choice{asked_template, config.data.prompt_template, config.reward.extract};
  choice.extract = choose_extract(config.reward.extract, form, problems, config.reward.grader);
  choice.boxed = choice.asked_extract == ExtractOption::automatic && asks_for_box(form, problems);
  config.reward.extract = option_of(choice.extract);
  if (const std::string words = choice.in_words(); !words.empty()) log(words);
}

at::Device device_for(const TrainConfig& config, const Ranks& ranks) {
  const bool counted = config.device == "cuda" && !ranks.alone();
  return parse_device(counted ? device_of_rank(config.device, ranks.place().local, visible_cuda_devices())
                              : config.device);
}

void check_longest(const TrainConfig& config, const ModelConfig& model) {
  const int64_t longest = config.data.max_prompt_length + config.rollout.response_length;
  if (longest <= model.max_position_embeddings) return;
  throw Error(ErrorKind::config, str("data.max_prompt_length + rollout.response_length = ", longest,
                                     " is more than the model's max_position_embeddings = ",
                                     model.max_position_embeddings, ": lower one of them"));
}

// On a GPU the number of responses decoded at once decides which GEMMs run, and so the bits. It comes from the config,
// the model and the device's whole memory, never from what is free at this moment: a resumed run decodes as the run
// before.
EngineConfig engine_of(const TrainConfig& config, const MemoryPlan& plan) {
  EngineConfig engine;
  engine.max_slots = plan.slots > 0 ? plan.slots : config.rollout.max_slots;
  engine.cache_tokens = plan.cache_tokens;
  return engine;
}

// `weights` and `tokenizer_from` are directories; a fresh run has one for both.
Parts load_parts(TrainConfig& config, const std::string& weights, const std::string& tokenizer_from,
                 const MemoryPlan& plan, const Ranks& ranks) {
  use_threads(config.threads);
  const std::string asked_template = config.data.prompt_template;
  config.data.prompt_template = choose_template(asked_template, tokenizer_from, "qwen_math");
  Template form = load_template(config.data.prompt_template, tokenizer_from, config.data.examples);
  const at::Device device = device_for(config, ranks);
  Placement placement{.rank = ranks.rank(), .ranks = ranks.size()};
  Parts parts{open_policy(weights, device, config.model_options(), tokenizer_from,
                          own_masters(placement.rank, placement.ranks)),
              {},
              {},
              {},
              {},
              {},
              {},
              {},
              {}};
  require_sound_gpu(*parts.policy.model);
  const Tokenizer& tokenizer = parts.policy.tokenizer;
  const bool labels = config.needs().labels && !config.reward.from_outside();
  parts.data = load_set(config, config.data.files, tokenizer, form, 0, labels);
  decide_extract(config, asked_template, form, parts.data.problems);
  parts.graders =
      make_graders(config.reward.grader, parse_graders(config.reward.graders, "reward.graders"), config.reward.setup());
  check_golds(parts.graders, parts.data.problems);
  if (!config.data.val_files.empty()) {
    parts.validation = load_set(config, config.data.val_files, tokenizer, form, 0, true);
    check_golds(parts.graders, parts.validation.problems);
  }
  parts.stop_ids = collect_stop_ids(parts.policy.model->config(), tokenizer, stop_ids(form, tokenizer));
  if (parts.stop_ids.empty()) {
    throw Error(
        ErrorKind::config,
        str(weights,
            ": no token ends a response: neither config.json, generation_config.json, the tokenizer nor the template ",
            form.name, " names one; add eos_token_id to generation_config.json"));
  }
  check_longest(config, parts.policy.model->config());
  check_head(*parts.policy.model, parts.data.prompt.front(), config.rollout.temperature);
  if (!config.rollout.served()) {
    parts.engine = engine_of(config, plan);
    parts.rollout = make_engine(*parts.policy.model, parts.engine);
  } else {
    auto served = std::make_unique<ServedRollout>(config.rollout, *parts.policy.model, parts.data.prompt.front(),
                                                  parts.stop_ids, config.update.micro_batch_tokens);
    parts.served = served.get();
    parts.rollout = std::move(served);
  }
  placement.on_host = plan.offloads;
  placement.copies = parts.policy.model->bf16_copies();
  parts.optimizer = std::make_unique<Optimizer>(parts.policy.model->trainable(), config.optimizer,
                                                Optimizer::Path::by_device, placement);
  parts.auxiliary_models = make_auxiliary_models(config, device, *parts.policy.model, ranks);
  return parts;
}

// Loads a reward's function and sees that it can be called with the data's columns, in a Python that ends.
void check_call_of_reward(const TrainConfig& config) {
  constexpr size_t kRows = 2, kLongestWord = 60000;  // of a command line
  std::vector<RewardAsk> asks;
  std::vector<Problem> problems(kRows);
  const Verdict none;
  const std::map<std::string, std::string> rows = rows_for_reward(config);
  for (const auto& [id, row] : rows) {
    if (asks.size() == kRows) break;
    if (row.size() > kLongestWord) continue;
    problems[asks.size()].id = id;
    problems[asks.size()].gold = {""};
    asks.push_back({problems[asks.size()], "", 0, true, none, &row, {}});
  }
  if (asks.empty()) return;
  std::vector<std::string> words = {"check", config.reward.python};
  for (const std::string& line : split(trim(reward_lines(asks)), '\n')) words.push_back(line);
  run_python("reward", words, config.reward.scorer());
}

void check_before_loading(const TrainConfig& config, const Ranks& ranks) {
  if (ranks.leads()) {
    check_python_function("reward.python", config.reward.python == kTaskScorers ? "" : config.reward.python);
    check_python_function("method.python", config.method_python);
    check_call_of_reward(config);
  }
  if (ranks.alone()) return;
  if (config.rollout.off_policy_steps > 0) {
    throw Error(ErrorKind::config,
                str("rollout.off_policy_steps = 1 with ", ranks.size(),
                    " ranks: one process asks servers during its update; start one, or set it to 0"));
  }
  if (!config.rollout.environment.some()) return;
  throw Error(ErrorKind::config, str("rollout.environment = \"", word_of(config.rollout.environment.kind), "\" with ",
                                     ranks.size(), " ranks: episodes are not shared out; start one process"));
}

std::string in_bytes(int64_t n) { return human_bytes(static_cast<double>(n)); }

// Bytes of this rank's GPU, as its driver says; 0: of the CPU, or not known.
int64_t memory_of_device(const TrainConfig& config, const Ranks& ranks) {
  if (config.device == "cpu") return 0;
  const std::string one = device_of_rank(config.device, ranks.place().local, ranks.alone() ? 1 : cuda_devices());
  const int64_t total = cuda_memory(one == "cuda" ? 0 : std::atoll(one.substr(one.find(':') + 1).c_str()));
  if (total == 0) device_for(config, ranks);  // refuses one that is not there
  return total;
}

// A GPU's host has the masters and moments of each of its ranks.
void check_host(const MemoryPlan& plan, int64_t among) {
  const int64_t host = machine_memory().total / std::max<int64_t>(among, 1);
  if (!plan.offloads || host == 0 || plan.host <= host) return;
  throw Error(ErrorKind::limit,
              str("update.offload: masters and moments take ", in_bytes(plan.host), " of the host's memory, of which ",
                  among > 1 ? str("each of its ", among, " ranks has ") : "there are ", in_bytes(host),
                  "; set optimizer.moments to bf16 or int8, or use more ranks"));
}

// Of a GPU what a training may take of it: the same rule as that of the engine's cache.
PlanLimits limits_of(const TrainConfig& config, const std::string& out, int64_t total, int64_t among) {
  PlanLimits limits = limits_here(out);
  if (config.device != "cpu") {
    limits.memory = usable_gpu(total);
    limits.memory_free = 0;
    limits.whose = str("of this GPU's ", in_bytes(total), " a training may take");
  } else if (among > 1) {
    limits.memory /= among;
    limits.memory_free /= among;
    limits.whose = str("of this host's memory each of its ", among, " ranks has");
  }
  return limits;
}

// Before anything is loaded, as if each rank were the one that saves: the ranks of a host divide its memory. Rank 0
// alone writes; checkpoints that a run has already are not counted again.
PlannedRun plan_run(const TrainConfig& config, const std::string& out, const RunDirectory* resumed, bool allow,
                    const Ranks& ranks) {
  const bool own = resumed != nullptr && exists(path_join(resumed->model_files(), "config.json"));
  PlannedRun planned{.models = planned_models(config, own ? resumed->model_files() : "")};
  planned.models.ranks = ranks.size();
  const int64_t total = memory_of_device(config, ranks), among = ranks.place().on_host;
  if (total > 0) {
    planned.models.gpu = usable_gpu(total);
    planned.models.driver = driver_memory({.memory = total}, ranks.size(), config.update.reduce == Reduce::micro);
  }
  MemoryPlan& plan = planned.plan = plan_memory(config, planned.models);
  PlanLimits limits = limits_of(config, out, total, among);
  if (resumed != nullptr || !ranks.leads()) limits.disk_free = 0;
  if (!allow) {
    if (total > 0) check_host(plan, among);
    check_plan(plan, config, planned.models, limits);
  } else if (limits.memory > 0 && plan.peak() > limits.memory) {
    warn(str(limits.whose, " ", in_bytes(limits.memory), ": less than the plan (--allow-over-plan)"));
  }
  planned.words =
      str("peak ", in_bytes(plan.peak()), ", in the phase ", plan.phases[plan.peak_phase()], "; ",
          total > 0 ? str(limits.whose, " ", in_bytes(limits.memory)) : str(in_bytes(limits.memory_free), " free"));
  return planned;
}

std::string fingerprint_of(const TrainConfig& config, const Parts& parts, const Ranks& ranks) {
  return make_fingerprint(
      {config, hex(parts.data.hash), hex(parts.validation.hash), parts.policy.tokenizer.directory(), ranks.size()});
}

Training assemble(TrainConfig config, RunDirectory run, Parts parts, PlannedRun planned, std::string fingerprint,
                  std::shared_ptr<Ranks> ranks) {
  std::unique_ptr<Rollouter> shared =
      ranks->alone() ? nullptr : share_rollout(*parts.rollout, *ranks, parts.served == nullptr);
  Training t{.config = std::move(config),
             .ranks = std::move(ranks),
             .run = std::move(run),
             .policy = std::move(parts.policy),
             .engine = shared ? std::move(parts.rollout) : nullptr,
             .served = parts.served,
             .rollout = shared ? std::move(shared) : std::move(parts.rollout),
             .graders = std::move(parts.graders),
             .optimizer = std::move(parts.optimizer),
             .auxiliary_models = std::move(parts.auxiliary_models),
             .data = std::move(parts.data),
             .validation = std::move(parts.validation),
             .stop_ids = std::move(parts.stop_ids),
             .state = {},
             .prefetched = {},
             .planned = std::move(planned)};
  if (t.config.reward.from_outside() && t.ranks->leads()) {
    t.external = std::make_unique<RewardCommand>(scorer_words(t.config), t.config.reward.scorer(),
                                                 t.config.reward.command_seconds);
    t.external->tell_rows(rows_for_reward(t.config));
  }
  if (!t.config.method_python.empty()) {
    t.advantages =
        std::make_unique<PythonAdvantages>(t.config.method_python, t.config.reward.command_seconds, *t.ranks);
  }
  if (!t.ranks->alone()) {
    const Shard shard = t.config.update.gradients_by_owner() ? Shard::gradients : Shard::moments;
    t.optimizer->shard_over(*t.ranks, shard, t.policy.model->bf16_copies());
    for (auto& auxiliary : t.auxiliary_models) auxiliary->shard_over(*t.ranks, *t.optimizer);
  }
  t.state.fingerprint = std::move(fingerprint);
  return t;
}

// Of the numbers that are there on every rank, wherever they were read from: of a master its bf16 copy.
std::string hash_of_weights(Model& model) {
  std::map<const at::TensorImpl*, at::Tensor> copies;
  for (const Bf16Copy& copy : model.bf16_copies()) copies.emplace(copy.master.unsafeGetTensorImpl(), copy.compute);
  std::string hashes;
  for (const NamedTensor& t : stored_tensors(model)) {
    const auto found = copies.find(t.tensor.unsafeGetTensorImpl());
    const at::Tensor host = (found == copies.end() ? t.tensor : found->second).detach().cpu().contiguous();
    hashes += hash_of_text({static_cast<const char*>(host.const_data_ptr()), host.nbytes()}) + "\n";
  }
  return hash_of_text(hashes);
}

// What must be the same on all ranks, as lines "name = value": every option but those of the place, what a resume
// compares, and the weights that the run begins with. In bf16 no rank has all masters: those of a fresh run are what
// its files say, those of a resumed one what the manifest of its checkpoint says, which is compared before.
std::vector<std::string> lines_of_run(const TrainConfig& config, const std::string& fingerprint, const std::string& out,
                                      Model& model, bool fresh) {
  std::vector<std::string> lines = {str("out = ", out),
                                    str("the weights to begin with (hash) = ", hash_of_weights(model))};
  if (fresh && config.dtype == Dtype::bf16)
    lines.push_back(str("files of the model (hash) = ", hash_of_model(config.model)));
  for (const FieldValue& field : fields_of(config)) {
    if (field.key != "threads" && field.key != "device") lines.push_back(str(field.key, " = ", field.value));
  }
  if (config.device == "cpu" && config.dtype == Dtype::bf16) {
    lines.push_back(str("products of bf16 = ", kernels::bf16_gemm().reason));
  }
  for (std::string line : split(fingerprint, '\n')) {
    if (line.empty() || line.starts_with("threads = ")) continue;
    if (line.starts_with("data = ")) line.replace(0, 4, "training problems in their order (hash)");
    if (line.starts_with("validation = ")) line.replace(0, 10, "validation problems in their order (hash)");
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

// Settings of the run with those of the command line, where these may change.
std::vector<Setting> with_overrides(std::vector<Setting> settings, const std::vector<Setting>& overrides,
                                    const TrainConfig& before) {
  for (const Setting& setting : overrides) {
    if (setting.key == "allow-changes" || setting.key == kOverPlan) continue;
    const auto* text = std::get_if<std::string>(&setting.value);
    const bool other_gpu = setting.key == "device" && text && kind_of_device(*text) == kind_of_device(before.device);
    const bool first_servers = setting.key == "rollout.servers" && !before.rollout.served();
    if (!first_servers && (is_free_option(setting.key) || setting.key == "threads" || other_gpu)) {
      settings.push_back(setting);
    } else {
      throw Error(ErrorKind::config, str(setting.where,
                                         ": cannot change on --resume: it would change results; start a new run "
                                         "from the checkpoint instead (--model PATH/checkpoints/step-...)"));
    }
  }
  return settings;
}

// What keeps a resumed run from equalling an uninterrupted one is refused; under --allow-changes it is said, and kept
// in env.json, where every report shows it.
struct Consent {
  const RunDirectory& run;
  bool given = false;

  void ask(const std::string& problem, const std::string& remedy) const {
    if (!given) throw Error(ErrorKind::config, str(problem, "; ", remedy, ", or add --allow-changes"));
    count_warning(Warning::changed);
    warn(str("resuming all the same (--allow-changes): ", problem));
    run.remark(problem);
  }
};

std::string state_file(const FoundCheckpoint& found) { return path_join(state_folder(found.path), "state.json"); }

std::optional<FoundCheckpoint> find_checkpoint(const RunDirectory& run) {
  return newest_checkpoint(run, [](const std::string& text, const FoundCheckpoint& found) {
    TrainState::parse(text, state_file(found), found.step);
  });
}

// A checkpoint is sealed after the lines of its steps are on disk, so a kill never leaves one without them.
void check_steps(const RunDirectory& run, const FoundCheckpoint& found, const Consent& consent) {
  const std::string missing = run.missing_steps(found.step);
  if (missing.empty()) return;
  const std::string problem = str("steps.jsonl lacks steps ", missing);  // known to every later resume as this text
  const std::vector<std::string> known = run.remarks();
  if (std::ranges::find(known, problem) != known.end()) return;
  consent.ask(problem, str("the checkpoint to go on from is ", found.path, ": put the file back"));
}

// Without a checkpoint a run starts over; but not where one must have been there, and not from another base.
void check_start_over(const RunDirectory& run, const TrainConfig& before, bool had_folder, const Consent& consent) {
  const std::string weights = run.environment("initial_weights");
  if (!weights.empty() && weights != hash_of_model(before.model)) {
    consent.ask(str(before.model, ": other weights or another config.json than when ", run.path(), " was started"),
                "put them back");
  }
  const int64_t last = run.last_step(), every = before.train.save_freq;
  // A run whose saves all failed, on a disk that was full, never had one.
  const bool lost = every > 0 && last > every && run.has_saved() != "no";
  if (!had_folder || lost) {
    consent.ask(str(run.checkpoints(), " holds no checkpoint, but ",
                    had_folder ? str(run.steps_file(), " goes to step ", last, " and one was saved every ", every,
                                     " (train.save_freq)")
                               : "a run always has this folder",
                    ": going on would start over from nothing"),
                "put the checkpoints back, or start anew with another --out");
  } else if (last > 0) {
    warn(str(run.path(), ": stopped before its first checkpoint: the ", last, " steps in ", run.steps_file(),
             " are removed and made again"));
  }
}

// Weights, moments and state of the checkpoint, if it belongs to the same run.
void restore(Training& t, const FoundCheckpoint& found, const Consent& consent) {
  std::string now = t.state.fingerprint;
  const std::string text = load_checkpoint(found, *t.policy.model, *t.optimizer, t.auxiliary_models);
  t.state = TrainState::parse(text, state_file(found), found.step);
  t.prefetched = prefetched_of(found);
  const FingerprintDifferences differences = compare_fingerprints(t.state.fingerprint, now);
  if (!differences.changed.empty()) {
    consent.ask(str(found.path, ": the run was started with ", join(differences.changed, "; "),
                    ": the result would differ from an uninterrupted run's"),
                "restore it");
  }
  if (!differences.unrecorded.empty()) {
    warn(str(found.path, ": saved by an earlier version of ucas, which did not keep these, so that a change of them ",
             "cannot be seen: ", join(differences.unrecorded, ", ")));
  }
  t.state.fingerprint = std::move(now);
  if (t.state.carried_over > 0) {
    t.state.cursor.carry_over = read_carry_over(path_join(state_folder(found.path), kCarryOverFile), t.data, found.step,
                                                t.state.carried_over, t.policy.model->config().vocab_size);
  }
  for (auto& auxiliary : t.auxiliary_models) auxiliary->restore(t.state.auxiliary_models[auxiliary->name()]);
}

// Where rank 0 says that the run goes on: it alone reads every byte of every candidate and clears up.
std::optional<FoundCheckpoint> choose_checkpoint(const RunDirectory& run, const TrainConfig& before, bool had_folder,
                                                 const Consent& consent, Ranks& ranks) {
  std::optional<FoundCheckpoint> found;
  std::string mine;
  ranks.together("choosing the checkpoint", [&] {
    if (!ranks.leads()) return;
    found = find_checkpoint(run);
    if (!found) return check_start_over(run, before, had_folder, consent);
    check_steps(run, *found, consent);
    if (!ranks.alone()) mine = str(found->step, " ", manifest_of(*found));
  });
  const std::string told = ranks.from_leader("the checkpoint to go on from", mine);
  ranks.together("finding that checkpoint", [&] {
    if (ranks.leads() || told.empty()) return;
    const std::vector<std::string> word = split(told, ' ');
    const int64_t step = std::atoll(word.at(0).c_str());
    found = FoundCheckpoint{run.checkpoint(step), step};
    check_found_elsewhere(*found, word.at(1));
  });
  return found;
}

// What rank 0 has just made may take a while to be seen through a network file system.
RunDirectory watch_soon(const std::string& path) {
  constexpr int kLooks = 60;
  for (int look = 1; look < kLooks && !exists(path_join(path, "config.toml")); ++look) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return RunDirectory::watch(path);
}

}  // namespace

Training open_training(TrainConfig config, const std::string& out, const std::string& command, bool allow_over_plan,
                       std::shared_ptr<Ranks> ranks) {
  begin_peak_resident();
  const PlannedRun planned = ranks->together("planning the run", [&] {
    config.validate();
    if (ranks->leads()) RunDirectory::check_free(out);
    check_before_loading(config, *ranks);
    return plan_run(config, out, nullptr, allow_over_plan, *ranks);
  });
  std::string tokenizer, fingerprint;
  Parts parts = ranks->together("loading model and data", [&] {
    tokenizer = directory_with(config.model, "tokenizer.json");
    Parts loaded = load_parts(config, config.model, tokenizer, planned.plan, *ranks);
    fingerprint = fingerprint_of(config, loaded, *ranks);
    return loaded;
  });
  if (!ranks->alone()) {
    require_same(*ranks, "comparing the ranks' runs",
                 lines_of_run(config, fingerprint, out, *parts.policy.model, true));
  }
  std::optional<RunDirectory> run;
  ranks->together("creating the run directory", [&] {
    if (!ranks->leads()) return;
    RunEnvironment environment;
    environment.version = version_and_commit();
    environment.torch = torch_version();
    environment.isa = kernels::isa();
    environment.isa_reason = kernels::isa_reason();
    if (config.dtype == Dtype::bf16) environment.isa_reason += str("; ", kernels::bf16_gemm().reason);
    environment.device = config.device;
    environment.threads = at::get_num_threads();
    environment.started = utc_now();
    environment.model = config.model;
    environment.data = join(config.data.files, ", ");
    environment.method = config.method->title();
    environment.command = command;
    environment.initial_weights = hash_of_model(config.model);
    environment.training_data = hex(parts.data.hash);
    environment.planned_memory = planned.plan.peak();
    if (parts.engine.cache_tokens > 0) {
      environment.rollout_slots = parts.engine.max_slots;
      environment.rollout_cache_tokens = parts.engine.cache_tokens;
    }
    environment.checkpoint_saved = "no";
    run = RunDirectory::create(out, to_toml(config), environment);
    keep_model_files(*run, config.model, tokenizer);
  });
  return ranks->together("preparing the run", [&] {
    if (!ranks->leads()) run = watch_soon(out);
    return assemble(std::move(config), std::move(*run), std::move(parts), planned, std::move(fingerprint), ranks);
  });
}

Training resume_training(const std::string& path, const std::vector<Setting>& overrides, std::shared_ptr<Ranks> ranks) {
  begin_peak_resident();
  const auto given = [&](const char* key) {
    return std::ranges::find(overrides, key, &Setting::key) != overrides.end();
  };
  const bool allow_changes = given("allow-changes");
  TrainConfig before, config;
  bool had_folder = false;
  ranks->together("reading the run's config", [&] {
    RunDirectory::check_started(path);
    const std::vector<Setting> saved = read_toml(path_join(path, "config.toml"));
    before = make_train_config(saved);
    config = make_train_config(with_overrides(saved, overrides, before));
    config.validate();
    had_folder = is_directory(path_join(path, "checkpoints"));  // before open() makes it
  });
  std::optional<RunDirectory> run;
  const PlannedRun planned = ranks->together("opening the run directory", [&] {
    check_before_loading(config, *ranks);
    run = ranks->leads() ? RunDirectory::open(path) : RunDirectory::watch(path);
    return plan_run(config, path, &*run, given(kOverPlan), *ranks);
  });
  std::optional<FoundCheckpoint> found =
      choose_checkpoint(*run, before, had_folder, Consent{*run, allow_changes}, *ranks);
  std::string weights, base, fingerprint;
  Parts parts = ranks->together("loading model and data", [&] {
    weights = found ? found->path : config.model;
    base = directory_with(config.model, "tokenizer.json");
    Parts loaded = load_parts(config, weights, tokenizer_directory(*run, weights, base), planned.plan, *ranks);
    check_engine(loaded.engine, *run);
    fingerprint = fingerprint_of(config, loaded, *ranks);
    return loaded;
  });
  Training t = ranks->together("preparing the run", [&] {
    Training made =
        assemble(std::move(config), std::move(*run), std::move(parts), planned, std::move(fingerprint), ranks);
    if (found) restore(made, *found, Consent{made.run, allow_changes});
    return made;
  });
  if (!ranks->alone()) {
    require_same(*ranks, "comparing the ranks' runs",
                 lines_of_run(t.config, t.state.fingerprint, path, *t.policy.model, !found));
  }
  if (found) {
    log(str("resuming ", path, " after step ", t.state.step));
  } else {
    log(str("resuming ", path, ": no checkpoint yet, starting over from ", t.config.model));
  }
  t.ranks->together("clearing up the run directory", [&] {
    if (!t.run.writes()) return;
    keep_model_files(t.run, weights, base);
    t.run.cut_after(found ? t.state.step : -1);
    if (std::ranges::any_of(overrides, [](const Setting& s) { return s.key != kOverPlan; })) {
      write_file(t.run.config_file(), to_toml(t.config));
    }
  });
  return t;
}

}  // namespace ucas
