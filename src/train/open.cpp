// How a run begins or goes on: everything is loaded and checked before anything is written.
#include <nlohmann/json.hpp>
#include <set>

#include <ATen/Parallel.h>

#include "base/build_info.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "data/problems.h"
#include "data/templates.h"
#include "kernels/lm_head.h"
#include "model/safetensors.h"
#include "rollout/engine.h"
#include "train/checkpoint.h"
#include "train/self_check.h"
#include "train/trainer.h"

namespace ucas {

namespace {

// Options that may change between a run and its resumption: they do not change what a step computes.
const std::set<std::string>& free_options() {
  static const std::set<std::string> keys = {"label",
                                             "train.steps",
                                             "train.epochs",
                                             "train.max_hours",
                                             "train.save_freq",
                                             "train.keep",
                                             "rollout.max_slots",
                                             "train.stored_prompts",
                                             "train.stored_responses",
                                             "train.stored_signals",
                                             "train.stored_signal_tokens"};
  return keys;
}

TrainingSet load_set(const TrainConfig& config, const std::vector<std::string>& files, const Tokenizer& tokenizer,
                     const Template& form, int64_t limit, bool labels) {
  ProblemOptions options;
  options.labels = labels;
  options.bad_rows = config.data.skip_bad_rows ? BadRows::skip : BadRows::stop;
  std::vector<Problem> problems = read_problems(files, options);
  if (limit > 0 && limit < static_cast<int64_t>(problems.size())) problems.resize(static_cast<size_t>(limit));
  TrainingSet set;
  set.hash = content_hash(problems);
  PreparedPrompts prompts = prepare_prompts(form, problems, tokenizer, config.data.max_prompt_length);
  set.dropped = prompts.dropped;
  set.prompt = std::move(prompts.ids);
  for (int64_t index : prompts.problem) set.problems.push_back(std::move(problems[static_cast<size_t>(index)]));
  if (set.dropped > 0) {
    warn(str(set.dropped, " of ", set.dropped + static_cast<int64_t>(set.problems.size()),
             " prompts are longer than data.max_prompt_length = ", config.data.max_prompt_length, " tokens: left out"));
  }
  return set;
}

std::string hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

// Of everything that decides what a checkpoint's model computes.
std::string hash_of_model(const std::string& directory) {
  std::set<std::string> files = {path_join(directory, "config.json")};
  for (const StoredTensor& tensor : list_weights(directory)) files.insert(tensor.file);
  std::string hashes;
  for (const std::string& file : files) hashes += hash_of_file(file) + "\n";
  return hash_of_text(hashes);
}

// The checkpoints that companions load whenever the run starts or goes on: what lies there must not change meanwhile.
std::set<std::string> companion_models(const TrainConfig& config) {
  Needs needs = config.needs();
  std::set<std::string> models;
  auto add = [&](const std::string& own) { models.insert(own.empty() ? config.model : own); };
  if (needs.reference) add("");
  if (needs.critic) add(needs.critic->model);
  if (needs.prm) add(needs.prm->model);
  return models;
}

// One `name = value` a line: what must be the same for a resumed run to equal an uninterrupted one.
std::string fingerprint_of(const Training& t) {
  std::string text;
  for (const FieldValue& field : fields_of(t.config)) {
    if (!free_options().contains(field.key) && field.key != "threads") text += str(field.key, " = ", field.value, "\n");
  }
  text += str("data = ", hex(t.data.hash), "\n", "validation = ", hex(t.validation.hash), "\n");
  text += str("tokenizer = ", hash_of_file(path_join(t.policy.tokenizer.directory(), "tokenizer.json")), "\n");
  for (const std::string& model : companion_models(t.config)) {
    text += str("weights of ", model, " = ", hash_of_model(model), "\n");
  }
  text +=
      str("isa = ", kernels::isa(), "\n", "torch = ", torch_version(), "\n", "threads = ", at::get_num_threads(), "\n");
  return text;
}

// Everything that does not depend on whether the run is fresh; weights come from `weights`.
struct Parts {
  Policy policy;
  std::unique_ptr<Rollout> rollout;
  std::unique_ptr<AdamW> optimizer;
  std::vector<std::unique_ptr<Companion>> companions;
  TrainingSet data, validation;
  std::vector<int32_t> stop_ids;
};

Parts load_parts(const TrainConfig& config, const std::string& weights) {
  use_threads(config.threads);
  Template form = load_template(config.data.prompt_template);
  at::Device device = parse_device(config.device);
  Parts parts{open_policy(weights, device), nullptr, nullptr, {}, {}, {}, {}};
  const Tokenizer& tokenizer = parts.policy.tokenizer;
  parts.data = load_set(config, config.data.files, tokenizer, form, 0, config.needs().labels);
  if (!config.data.val_files.empty()) {
    parts.validation = load_set(config, config.data.val_files, tokenizer, form, config.data.val_limit, true);
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
  parts.rollout = make_engine(*parts.policy.model, engine);
  parts.optimizer = std::make_unique<AdamW>(parts.policy.model->parameters(), config.optimizer);
  parts.companions = make_companions(config, device);
  return parts;
}

Training assemble(TrainConfig config, RunDirectory run, Parts parts) {
  Extract extract = config.reward.extract;
  Training t{std::move(config),
             std::move(run),
             std::move(parts.policy),
             std::move(parts.rollout),
             make_math_verifier(extract),
             std::move(parts.optimizer),
             std::move(parts.companions),
             std::move(parts.data),
             std::move(parts.validation),
             std::move(parts.stop_ids),
             "",
             {}};
  t.fingerprint = fingerprint_of(t);
  return t;
}

}  // namespace

Training open_training(TrainConfig config, const std::string& out) {
  config.validate();
  Parts parts = load_parts(config, config.model);
  RunEnvironment environment;
  environment.version = version();
  environment.torch = torch_version();
  environment.isa = kernels::isa();
  environment.isa_reason = kernels::isa_reason();
  environment.device = config.device;
  environment.threads = at::get_num_threads();
  environment.started = utc_now();
  environment.model = config.model;
  environment.data = join(config.data.files, ", ");
  environment.method = config.method->title();
  RunDirectory run = RunDirectory::create(out, to_toml(config), environment);
  return assemble(std::move(config), std::move(run), std::move(parts));
}

Training resume_training(const std::string& path, const std::vector<Setting>& overrides) {
  std::vector<Setting> settings = read_toml(path_join(path, "config.toml"));
  bool allow_changes = false;
  for (const Setting& setting : overrides) {
    if (setting.key == "allow-changes") {
      allow_changes = true;
    } else if (free_options().contains(setting.key) || setting.key == "threads") {
      settings.push_back(setting);
    } else {
      throw Error("config", str(setting.where,
                                ": cannot change on --resume: it would change results; start a new run "
                                "from the checkpoint instead (--model ",
                                path, "/checkpoints/step-...)"));
    }
  }
  TrainConfig config = make_train_config(settings);
  config.validate();
  RunDirectory run = RunDirectory::open(path);
  std::optional<FoundCheckpoint> found = newest_checkpoint(run);
  Parts parts = load_parts(config, found ? found->path : config.model);
  Training t = assemble(std::move(config), std::move(run), std::move(parts));
  if (found) {
    std::string state = load_checkpoint(*found, *t.policy.model, *t.optimizer, t.companions);
    t.state = TrainState::parse(state, allow_changes ? "" : t.fingerprint, found->path);
    for (auto& companion : t.companions) companion->restore(t.state.companions[companion->name()]);
    log(str("resuming ", path, " after step ", t.state.step));
  } else {
    log(str("resuming ", path, ": no checkpoint yet, starting over from ", t.config.model));
  }
  t.run.cut_after(found ? t.state.step : -1);
  if (!overrides.empty()) write_file(t.run.config_file(), to_toml(t.config));
  return t;
}

std::string TrainState::json(const std::string& fingerprint) const {
  OrderedJson state = {{"format", 1},
                       {"step", step},
                       {"epoch", cursor.epoch},
                       {"index", cursor.index},
                       {"fruitless", cursor.fruitless},
                       {"skipped_steps", skipped.total},
                       {"empty_steps", empty_steps},
                       {"nonfinite_streak", skipped.in_a_row},
                       {"companions", companions},
                       {"fingerprint", fingerprint}};
  return state.dump(1) + "\n";
}

TrainState TrainState::parse(const std::string& text, const std::string& fingerprint, const std::string& where) {
  Json json = parse_json(text, where + "/state.json");
  TrainState s;
  try {
    s.step = json.at("step");
    s.cursor = {json.at("epoch"), json.at("index"), json.at("fruitless")};
    s.skipped.total = json.at("skipped_steps");
    s.empty_steps = json.at("empty_steps");
    s.skipped.in_a_row = json.at("nonfinite_streak");
    s.companions = json.value("companions", s.companions);
  } catch (const Json::exception& error) {
    throw Error("io", str(where, "/state.json: not a training state: ", error.what()));
  }
  if (fingerprint.empty()) {
    warn("resuming with --allow-changes: results may differ from an uninterrupted run");
    return s;
  }
  std::vector<std::string> saved = split(json.at("fingerprint").get<std::string>(), '\n'),
                           now = split(fingerprint, '\n');
  for (size_t i = 0; i < std::max(saved.size(), now.size()); ++i) {
    std::string before = i < saved.size() ? saved[i] : "(nothing)", after = i < now.size() ? now[i] : "(nothing)";
    if (before != after) {
      throw Error("config", str(where, ": the run was started with ", printable(before), " but this would go on with ",
                                printable(after), ": the result would differ; restore it, or add --allow-changes"));
    }
  }
  return s;
}

}  // namespace ucas
