#include "train/start.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "base/build_info.h"
#include "base/commit.h"
#include "base/error.h"
#include "base/file.h"
#include "base/lapses.h"
#include "base/log.h"
#include "base/str.h"
#include "data/problems.h"
#include "data/templates.h"
#include "hf/adapter.h"
#include "kernels/dispatch.h"
#include "kernels/lm_head.h"
#include "plan/plan.h"
#include "records/manifest.h"
#include "rollout/engine.h"
#include "train/checkpoint.h"
#include "train/draw.h"
#include "train/fingerprint.h"
#include "train/gpu_check.h"
#include "train/metrics.h"
#include "train/model_files.h"
#include "train/self_check.h"
#include "train/shared_rollout.h"
#include "train/surplus.h"

namespace ucas {

namespace {

constexpr const char* kOverPlan = "allow-over-plan";

TrainingSet load_set(const TrainConfig& config, const std::vector<std::string>& files, const Tokenizer& tokenizer,
                     const Template& form, int64_t limit, bool labels) {
  ProblemOptions options;
  options.labels = labels;
  options.columns = config.data.columns;
  options.bad_rows = config.data.skip_bad_rows ? BadRows::skip : BadRows::stop;
  std::vector<Problem> problems = read_problems(files, options);
  if (limit > 0 && limit < static_cast<int64_t>(problems.size())) problems.resize(static_cast<size_t>(limit));
  TrainingSet set;
  set.hash = content_hash(problems);
  PreparedPrompts prompts = prepare_prompts(form, problems, tokenizer, config.data.max_prompt_length);
  set.dropped = prompts.dropped;
  set.prompt = std::move(prompts.ids);
  for (int64_t index : prompts.problem) set.problems.push_back(std::move(problems[index]));
  if (set.dropped > 0) {
    note(Lapse::prompt, set.dropped);
    warn(str(set.dropped, " of ", set.dropped + set.size(),
             " prompts are longer than data.max_prompt_length = ", config.data.max_prompt_length, " tokens: left out"));
  }
  return set;
}

std::string hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

// Everything that does not depend on whether the run is fresh.
struct Parts {
  Policy policy;
  std::unique_ptr<Rollout> rollout;
  ServedRollout* served = nullptr;  // the same
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::unique_ptr<Companion>> companions;
  Graders graders;
  TrainingSet data, validation;
  std::vector<int32_t> stop_ids;
};

// `weights` and `tokenizer_from` are directories; a fresh run has one for both.
Parts load_parts(const TrainConfig& config, const std::string& weights, const std::string& tokenizer_from) {
  use_threads(config.threads);
  Template form = load_template(config.data.prompt_template, tokenizer_from, config.data.examples);
  at::Device device = parse_device(config.device);
  Parts parts{open_policy(weights, device, config.model_options(), tokenizer_from), {}, {}, {}, {}, {}, {}, {}};
  require_sound_gpu(*parts.policy.model);
  const Tokenizer& tokenizer = parts.policy.tokenizer;
  const bool labels = config.needs().labels && config.reward.command.empty();
  parts.graders =
      make_graders(config.reward.grader, parse_graders(config.reward.graders, "reward.graders"), config.reward.setup());
  parts.data = load_set(config, config.data.files, tokenizer, form, 0, labels);
  check_golds(parts.graders, parts.data.problems);
  check_sources(config, parts.data);
  if (!config.data.val_files.empty()) {
    parts.validation = load_set(config, config.data.val_files, tokenizer, form, config.data.val_limit, true);
    check_golds(parts.graders, parts.validation.problems);
  }
  parts.stop_ids = collect_stop_ids(parts.policy.model->config(), tokenizer, stop_ids(form, tokenizer));
  if (parts.stop_ids.empty()) {
    throw Error(
        "config",
        str(weights,
            ": no token ends a response: neither config.json, generation_config.json, the tokenizer nor the template ",
            form.name, " names one; add eos_token_id to generation_config.json"));
  }
  int64_t longest = config.data.max_prompt_length + config.rollout.response_length;
  if (longest > parts.policy.model->config().max_position_embeddings) {
    throw Error("config", str("data.max_prompt_length + rollout.response_length = ", longest,
                              " is more than the model's max_position_embeddings = ",
                              parts.policy.model->config().max_position_embeddings, ": lower one of them"));
  }
  check_head(*parts.policy.model, parts.data.prompt.front(), config.rollout.temperature);
  EngineConfig engine;
  engine.max_slots = config.rollout.max_slots;
  if (config.rollout.backend == SampledBy::native) {
    parts.rollout = make_engine(*parts.policy.model, engine);
  } else {
    auto served = std::make_unique<ServedRollout>(config.rollout, *parts.policy.model, parts.data.prompt.front(),
                                                  parts.stop_ids, config.update.micro_batch_tokens);
    parts.served = served.get();
    parts.rollout = std::move(served);
  }
  parts.optimizer = std::make_unique<Optimizer>(parts.policy.model->trainable(), config.optimizer);
  parts.companions = make_companions(config, device, *parts.policy.model);
  return parts;
}

struct Planned {
  int64_t memory = 0;
  std::string words;
};

// Before anything is loaded, of the rank that saves. Checkpoints that a run has already are not counted again.
Planned plan_run(const TrainConfig& config, const std::string& out, const RunDirectory* resumed, bool allow,
                 const Ranks& ranks) {
  if (config.device != "cpu") return {};
  const bool own = resumed != nullptr && exists(path_join(resumed->model_files(), "config.json"));
  PlannedModels models = planned_models(config, own ? resumed->model_files() : "");
  models.ranks = ranks.size();
  const MemoryPlan plan = plan_memory(config, models);
  PlanLimits limits = limits_here(out);
  if (resumed != nullptr) limits.disk_free = 0;
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  if (!allow) {
    check_plan(plan, config, models, limits);
  } else if (plan.peak() > limits.memory) {
    warn(str(limits.whose, " ", bytes(limits.memory), ": less than the plan (--allow-over-plan)"));
  }
  return {plan.peak(), str("peak ", bytes(plan.peak()), ", in the phase ", plan.phases[plan.peak_phase()], "; ",
                           bytes(limits.memory_free), " free")};
}

Training assemble(TrainConfig config, RunDirectory run, Parts parts, Planned planned, std::shared_ptr<Ranks> ranks) {
  std::unique_ptr<Rollout> shared =
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
             .shards = nullptr,
             .companions = std::move(parts.companions),
             .data = std::move(parts.data),
             .validation = std::move(parts.validation),
             .stop_ids = std::move(parts.stop_ids),
             .state = {},
             .ahead = {},
             .planned_memory = planned.memory,
             .plan = std::move(planned.words)};
  if (!t.config.reward.command.empty() && t.ranks->leads()) {
    t.external = std::make_unique<RewardCommand>(t.config.reward.command, t.config.reward.command_seconds);
  }
  if (!t.ranks->alone()) {
    t.optimizer->share_among(*t.ranks, t.config.update.shard, t.policy.model->narrow_copies());
    for (auto& companion : t.companions) companion->share_among(*t.ranks, *t.optimizer);
    if (t.config.update.shard == Shard::gradients) {
      t.shards = std::make_unique<ShardedGradients>(*t.policy.model, *t.optimizer, *t.ranks);
    }
  }
  t.state.fingerprint =
      make_fingerprint({t.config, hex(t.data.hash), hex(t.validation.hash), t.policy.tokenizer.directory()});
  return t;
}

// Settings of the run with those of the command line, where these may change.
std::vector<Setting> with_overrides(std::vector<Setting> settings, const std::vector<Setting>& overrides,
                                    const TrainConfig& before, bool allow_changes) {
  for (const Setting& setting : overrides) {
    if (setting.key == "allow-changes" || setting.key == kOverPlan) continue;
    const bool length = setting.key == "train.steps" || setting.key == "train.epochs";
    if (is_free_option(setting.key, before) || setting.key == "threads" || (length && allow_changes)) {
      settings.push_back(setting);
    } else if (length) {
      throw Error("config",
                  str(setting.where, ": cannot change on --resume: a learning rate of this run is planned over ",
                      "all its steps (schedule = \"cosine\"), so that other steps would change results; "
                      "leave it, or add --allow-changes"));
    } else {
      throw Error("config", str(setting.where,
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
    if (!given) throw Error("config", str(problem, "; ", remedy, ", or add --allow-changes"));
    note(Lapse::changed);
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
  if (!had_folder || (every > 0 && last > every)) {
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
  const std::string text = load_checkpoint(found, *t.policy.model, *t.optimizer, t.companions);
  t.state = TrainState::parse(text, state_file(found), found.step);
  t.ahead = ahead_of(found);
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
  if (t.state.surplus > 0) {
    t.state.cursor.surplus = read_surplus(path_join(state_folder(found.path), kSurplusFile), t.data, found.step,
                                          t.state.surplus, t.policy.model->config().vocab_size);
  }
  for (auto& companion : t.companions) companion->restore(t.state.companions[companion->name()]);
}

}  // namespace

namespace {

// The leader prepares a run and lets the others follow.
Training follow_training(TrainConfig config, const std::string& out, std::shared_ptr<Ranks> ranks) {
  config.validate();
  ranks->wait_for_all();
  Parts parts = load_parts(config, config.model, directory_with(config.model, "tokenizer.json"));
  return assemble(std::move(config), RunDirectory::watch(out), std::move(parts), {}, std::move(ranks));
}

}  // namespace

Training open_training(TrainConfig config, const std::string& out, const std::string& command, bool allow_over_plan,
                       std::shared_ptr<Ranks> ranks) {
  begin_peak_resident();
  if (!ranks->leads()) return follow_training(std::move(config), out, std::move(ranks));
  config.validate();
  const Planned planned = plan_run(config, out, nullptr, allow_over_plan, *ranks);
  const std::string tokenizer = directory_with(config.model, "tokenizer.json");
  Parts parts = load_parts(config, config.model, tokenizer);
  RunEnvironment environment;
  environment.version = commit().empty() ? version() : str(version(), ", commit ", commit());
  environment.torch = torch_version();
  environment.isa = kernels::isa();
  environment.isa_reason = kernels::isa_reason();
  if (config.dtype == Dtype::bf16) environment.isa_reason += str("; ", kernels::bf16_products().reason);
  environment.device = config.device;
  environment.threads = at::get_num_threads();
  environment.started = utc_now();
  environment.model = config.model;
  environment.data = join(config.data.files, ", ");
  environment.method = config.method->title();
  environment.command = command;
  environment.initial_weights = hash_of_model(config.model);
  environment.training_data = hex(parts.data.hash);
  environment.planned_memory = planned.memory;
  RunDirectory run = RunDirectory::create(out, to_toml(config), environment);
  keep_model_files(run, config.model, tokenizer);
  ranks->wait_for_all();
  return assemble(std::move(config), std::move(run), std::move(parts), planned, std::move(ranks));
}

Training resume_training(const std::string& path, const std::vector<Setting>& overrides, std::shared_ptr<Ranks> ranks) {
  begin_peak_resident();
  if (!ranks->leads()) ranks->wait_for_all();  // until what a kill has left is cleared up
  RunDirectory::check_started(path);
  const std::vector<Setting> saved = read_toml(path_join(path, "config.toml"));
  const TrainConfig before = make_train_config(saved);
  const bool allow_changes = std::ranges::find(overrides, "allow-changes", &Setting::key) != overrides.end();
  TrainConfig config = make_train_config(with_overrides(saved, overrides, before, allow_changes));
  config.validate();
  const bool had_folder = is_directory(path_join(path, "checkpoints"));  // before open() makes it
  RunDirectory run = ranks->leads() ? RunDirectory::open(path) : RunDirectory::watch(path);
  const Planned planned =
      plan_run(config, path, &run, std::ranges::find(overrides, kOverPlan, &Setting::key) != overrides.end(), *ranks);
  const Consent consent{run, allow_changes};
  std::optional<FoundCheckpoint> found = find_checkpoint(run);
  if (found) {
    check_steps(run, *found, consent);
  } else {
    check_start_over(run, before, had_folder, consent);
  }
  const std::string weights = found ? found->path : config.model;
  const std::string base = directory_with(config.model, "tokenizer.json");
  Parts parts = load_parts(config, weights, tokenizer_directory(run, weights, base));
  Training t = assemble(std::move(config), std::move(run), std::move(parts), planned, std::move(ranks));
  if (found) {
    restore(t, *found, Consent{t.run, allow_changes});
    log(str("resuming ", path, " after step ", t.state.step));
  } else {
    log(str("resuming ", path, ": no checkpoint yet, starting over from ", t.config.model));
  }
  if (!t.run.writes()) return t;
  keep_model_files(t.run, weights, base);
  t.run.cut_after(found ? t.state.step : -1);
  if (std::ranges::any_of(overrides, [](const Setting& s) { return s.key != kOverPlan; }))
    write_file(t.run.config_file(), to_toml(t.config));
  t.ranks->wait_for_all();
  return t;
}

}  // namespace ucas
