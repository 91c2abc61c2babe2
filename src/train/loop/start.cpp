#include "train/loop/start.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "config/policy_options.h"
#include "hf/peft.h"
#include "kernels/dispatch.h"
#include "kernels/lm_head.h"
#include "records/run/run_directory.h"
#include "rollout/environment/environment.h"
#include "rollout/rollouter.h"
#include "sharding/agreement.h"
#include "train/collect/scorer.h"
#include "train/loop/resume.h"
#include "train/metrics/metrics.h"
#include "train/state/fingerprint.h"
#include "train/update/self_check.h"

namespace ucas {

namespace {

// What needs no file of the run, and takes long to find out later.
void check_before_loading(const TrainConfig& config, const Ranks& ranks) {
  if (ranks.leads()) check_outside(config);
  if (ranks.alone() || !config.rollout.environment.some()) return;
  throw Error(ErrorKind::config, str("rollout.", config.rollout.environment.name(), " with ", ranks.size(),
                                     " ranks: episodes are not shared out; start one process"));
}

void check_longest(const TrainConfig& config, const ModelConfig& model) {
  const int64_t longest = config.data.max_prompt_length + config.rollout.response_length;
  if (longest <= model.max_position_embeddings) return;
  throw Error(ErrorKind::config, str("data.max_prompt_length + rollout.response_length = ", longest,
                                     " is more than the model's max_position_embeddings = ",
                                     model.max_position_embeddings, ": lower one of them"));
}

void load_data(Training& t, const std::string& asked_template, const Template& form, const std::string& weights) {
  TrainConfig& config = t.config;
  const Tokenizer& tokenizer = t.policy.tokenizer;
  t.data = load_problems(config, tokenizer, form, false, t.ranks->leads());
  decide_extract(config, asked_template, form, t.data.problems);
  t.graders =
      make_graders(config.reward.grader, parse_graders(config.reward.graders, "reward.graders"), config.reward.setup());
  check_golds(t.graders, t.data.problems);
  t.validation = load_problems(config, tokenizer, form, true, t.ranks->leads());
  check_golds(t.graders, t.validation.problems);
  Stops stops = stops_of(form, config.rollout.stop, tokenizer);
  t.stop_ids = collect_stop_ids(t.policy.model->config(), tokenizer, stops.ids);
  t.stop_texts = std::move(stops.texts);
  if (!t.stop_ids.empty()) return;
  throw Error(
      ErrorKind::config,
      str(weights,
          ": no token ends a response: neither config.json, generation_config.json, the tokenizer nor the template ",
          form.name, " names one; add eos_token_id to generation_config.json"));
}

std::unique_ptr<Rollouter> make_sampler(Training& t) {
  if (!t.config.rollout.served()) return make_engine(*t.policy.model, t.plan.slots);
  auto served = std::make_unique<ServedRollout>(t.config.rollout, *t.policy.model, t.data.prompt.front(), t.stop_ids,
                                                t.config.update.micro_batch_tokens);
  t.served = served.get();
  return served;
}

// Policy and data, and what reads or changes the weights. `weights` and `tokenizer_from` are directories.
Training load(TrainConfig config, const RunPlan& plan, const std::string& weights, const std::string& tokenizer_from,
              std::shared_ptr<Ranks> ranks) {
  use_threads(config.threads);
  const std::string asked_template = config.data.prompt_template;
  config.data.prompt_template = choose_template(asked_template, tokenizer_from, "qwen_math");
  Template form = load_template(config.data.prompt_template, tokenizer_from, config.data.examples);
  show_tools(config.rollout.environment, form);
  Policy policy = open_policy(weights, plan.device, config.model_options(), tokenizer_from,
                              own_masters(ranks->rank(), ranks->size()));
  Training t{.config = std::move(config), .ranks = std::move(ranks), .policy = std::move(policy), .plan = plan};
  Model& model = *t.policy.model;
  require_sound_gpu(model);
  load_data(t, asked_template, form, weights);
  check_longest(t.config, model.config());
  t.rollout = make_sampler(t);
  const Placement placement{
      .rank = t.ranks->rank(), .ranks = t.ranks->size(), .on_host = plan.offload, .copies = model.bf16_copies()};
  t.optimizer =
      std::make_unique<Optimizer>(model.trainable(), t.config.optimizer, Optimizer::Path::by_device, placement);
  t.auxiliary_models = make_auxiliary_models(t.config, plan.device, model, *t.ranks);
  t.state.fingerprint =
      make_fingerprint({t.config, t.data.hash, t.validation.hash, t.policy.tokenizer.directory(), t.ranks->size()});
  return t;
}

// What runs next to the policy: other ranks, and programs of the user.
void join_others(Training& t) {
  if (t.ranks->leads()) t.external = start_scorer(t.config);
  if (!t.config.method_python.empty()) {
    t.advantages =
        std::make_unique<PythonAdvantages>(t.config.method_python, t.config.reward.command_seconds, *t.ranks);
  }
  if (t.ranks->alone()) return;
  t.engine = std::move(t.rollout);
  t.rollout = share_rollout(*t.engine, *t.ranks);
  t.optimizer->shard_over(*t.ranks, t.plan.shard, t.policy.model->bf16_copies());
  for (auto& auxiliary : t.auxiliary_models) auxiliary->shard_over(*t.ranks, *t.optimizer);
}

void require_same_run(const Training& t, const std::string& out, bool fresh) {
  if (t.ranks->alone()) return;
  require_same(*t.ranks, "comparing the ranks' runs",
               lines_of_run(t.config, t.state.fingerprint, out, *t.policy.model, fresh));
}

RunEnvironment environment_of(const Training& t, const std::string& command) {
  const TrainConfig& config = t.config;
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
  environment.training_data = t.data.hash;
  environment.planned_memory = t.plan.memory;
  if (t.plan.slots.cache_tokens > 0) {
    environment.rollout_slots = t.plan.slots.max_slots;
    environment.rollout_cache_tokens = t.plan.slots.cache_tokens;
  }
  environment.checkpoint_saved = "no";
  return environment;
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
  const RunPlan plan = ranks->together("planning the run", [&] {
    config.validate();
    if (ranks->leads()) RunDirectory::check_free(out);
    check_before_loading(config, *ranks);
    return plan_run(config, out, nullptr, allow_over_plan, *ranks);
  });
  std::string tokenizer;
  Training t = ranks->together("loading model and data", [&] {
    tokenizer = directory_with(config.model, "tokenizer.json");
    return load(config, plan, config.model, tokenizer, ranks);
  });
  require_same_run(t, out, true);
  ranks->together("creating the run directory", [&] {
    if (!ranks->leads()) return;
    t.run = RunDirectory::create(out, to_toml(t.config), environment_of(t, command));
    keep_model_files(t.run, t.config.model, tokenizer);
  });
  ranks->together("preparing the run", [&] {
    if (!ranks->leads()) t.run = watch_soon(out);
    join_others(t);
  });
  return t;
}

Training resume_training(const std::string& path, const std::vector<Setting>& overrides, std::shared_ptr<Ranks> ranks) {
  begin_peak_resident();
  const auto given = [&](const char* key) {
    return std::ranges::find(overrides, key, &Setting::key) != overrides.end();
  };
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
  RunDirectory run;
  const RunPlan plan = ranks->together("opening the run directory", [&] {
    check_before_loading(config, *ranks);
    run = ranks->leads() ? RunDirectory::open(path) : RunDirectory::watch(path);
    return plan_run(config, path, &run, given(kOverPlan), *ranks);
  });
  const Consent consent{run, given(kAllowChanges)};
  const std::optional<FoundCheckpoint> found = choose_checkpoint(run, before, had_folder, consent, *ranks);
  const std::string weights = found ? found->path : config.model;
  std::string base;
  Training t = ranks->together("loading model and data", [&] {
    base = directory_with(config.model, "tokenizer.json");
    check_program(run);
    check_engine(plan.slots, run);
    return load(config, plan, weights, tokenizer_directory(run, weights, base), ranks);
  });
  ranks->together("preparing the run", [&] {
    join_others(t);
    if (found) restore(t, *found, consent);
  });
  t.run = std::move(run);
  require_same_run(t, path, !found);
  log(found ? str("resuming ", path, " after step ", t.state.step)
            : str("resuming ", path, ": no checkpoint yet, starting over from ", t.config.model));
  ranks->together("clearing up the run directory", [&] {
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
