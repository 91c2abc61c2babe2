// `ucas config`: the embedded training configs by name, one of them as a file of its own, or a commented config for a
// model, data and a machine, which fits by the plan.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "config/config_file.h"
#include "config/plan/known_models.h"
#include "config/plan/plan.h"
#include "config/plan/step_time.h"
#include "config/policy_options.h"
#include "config/train_config.h"
#include "data/problems.h"
#include "hf/hub.h"
#include "hf/model_config.h"
#include "hf/peft.h"
#include "results/table.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

struct ConfigOptions {
  int64_t gpus = 1;
  std::string model, method = "dapo", gpu, memory, out;
  std::vector<std::string> data, val;
  void fields(Fields& f) {
    f.field("model", model, OptionNames::checkpoint,
            "Hugging Face checkpoint: a directory or a name of the hub, ORG/NAME");
    f.field("data", data, OptionNames::training_data, "training problem files");
    f.field("val", val, OptionNames::evaluation_data, "validation problem files; empty = no validation");
    f.field("method", method, "RLVR method; `ucas train --help methods` lists all");
    f.field("gpu", gpu, "GPU to fit: h100, h200, a100, rtx4090, or cuda with --memory; empty = this machine's CPU");
    f.field("gpus", gpus, Range{1, 4096}, "number of GPUs, one rank each");
    f.field("memory", memory, "memory to fit, such as \"24GiB\"; empty = the GPU's, or this machine's");
    f.field("out", out, "file to write; must not exist; empty = standard output");
  }
};

constexpr double kAdapterRates = 10;     // learning rates of all weights (docs/first-model.md)
constexpr int64_t kTemplateTokens = 64;  // what a template adds to a question, at most, where nothing is known
constexpr int64_t kPromptStep = 64;
constexpr double kMemoryShare = 0.97;  // what a plan is off by, and what else a machine holds, is the rest

bool is_cpu(const ConfigOptions& options) { return options.gpu.empty(); }

// What the data says, and the model's files: how long prompts are, which grader reads the answers, and a template where
// the usual one is not of the model's tokens.
struct DataChoice {
  int64_t problems = 0, prompt_length = 0, positions = 0;
  std::string grader, note, prompt_template;
};

DataChoice look_at_data(const ConfigOptions& options, const std::string& tokenizer_directory,
                        const ProblemColumns& columns) {
  ProblemOptions reading;
  reading.columns = columns;
  const std::vector<Problem> problems = read_problems(options.data, reading);
  const ProblemsSummary summary = summarize_problems(problems);
  DataChoice choice{.problems = summary.problems, .grader = {}, .note = {}};
  Lengths tokens;
  if (exists(path_join(tokenizer_directory, "tokenizer.json"))) {
    const Tokenizer tokenizer = Tokenizer::load(tokenizer_directory);
    for (const Problem& problem : problems) {
      int64_t length = std::ssize(tokenizer.encode(problem.text)) + std::ssize(tokenizer.encode(problem.system));
      for (const Turn& turn : problem.earlier) length += std::ssize(tokenizer.encode(turn.content));
      tokens.add(length);
    }
    choice.prompt_length = (tokens.at(1) + kTemplateTokens + kPromptStep - 1) / kPromptStep * kPromptStep;
    if (choose_template(kAutoTemplate, tokenizer_directory, "") != "chat" && !tokenizer.id_of("<|im_start|>"))
      choice.prompt_template = "plain";
    choice.note =
        str("the longest question has ", grouped(tokens.at(1)), " tokens, the median ", grouped(tokens.at(0.5)));
  }
  const auto most = [&](const char* kind) {
    const auto row = summary.kinds.find(kind);
    return row != summary.kinds.end() && 2 * row->second > summary.problems;
  };
  if (most("choice")) choice.grader = "choice";
  if (most("program tests")) choice.grader = "code";
  return choice;
}

Setting typed(const std::string& key, const std::string& value) { return {key, value, "ucas config: " + key, true}; }

// Where a training begins, before it is fitted: sizes of a first look on a CPU, of a small study on a GPU.
std::vector<Setting> first_settings(const ConfigOptions& options, const DataChoice& data) {
  const bool cpu = is_cpu(options);
  std::vector<Setting> settings = {
      typed("method.name", options.method), typed("model", options.model), typed("device", cpu ? "cpu" : "cuda"),
      typed("dtype", cpu ? "f32" : "bf16"), typed("rollout.n", "8"),       typed("train.save_freq", "20")};
  int64_t batch = cpu ? 16 : 64;
  while (batch > 1 && batch > data.problems) batch /= 2;
  settings.push_back(typed("data.train_batch_size", str(batch)));
  settings.push_back(typed("update.mini_batch_size", str(std::max<int64_t>(1, batch / 2))));
  int64_t prompt = data.prompt_length, response = cpu ? 256 : 1024;
  if (data.positions > 0 && prompt > 0) {  // of which half is left to the response
    prompt = std::min(prompt, data.positions / 2);
    response = std::min(response, data.positions - prompt);
  }
  settings.push_back(typed("rollout.response_length", str(response)));
  if (prompt > 0) settings.push_back(typed("data.max_prompt_length", str(prompt)));
  if (!data.prompt_template.empty()) {  // which asks for no box
    settings.push_back(typed("data.template", data.prompt_template));
    settings.push_back(typed("reward.extract", "lenient"));
  }
  if (!data.grader.empty()) settings.push_back(typed("reward.grader", data.grader));
  settings.push_back({"data.files", options.data, "--data", false});
  if (!options.val.empty()) {
    settings.push_back({"data.val_files", options.val, "--val", false});
    settings.push_back(typed("train.test_freq", "10"));
  }
  return settings;
}

struct Fit {
  int64_t memory = 0;
  std::string of;  // "one H100 has"
  std::optional<Device> device;
};

Fit fit_of(const ConfigOptions& options) {
  Fit fit;
  if (is_cpu(options)) {
    const PlanLimits limits = limits_here("");
    fit.memory = limits.memory;
    fit.of = "this machine has";
  } else if (options.gpu != "cuda") {
    fit.device = gpu_named(options.gpu, Dtype::bf16);
    fit.memory = fit.device->memory;
    fit.of = str("one ", fit.device->name, " has");
  } else if (options.memory.empty()) {
    throw Error(ErrorKind::usage,
                "--gpu cuda: give its --memory, such as 24GiB, or the GPU's name: h100, h200, a100, rtx4090");
  }
  if (!options.memory.empty()) {
    fit.memory = parse_memory(options.memory);
    fit.of = "--memory is";
  }
  return fit;
}

PlannedModels models_of(const TrainConfig& config, const std::string& directory, const Fit& fit,
                        const ConfigOptions& options, std::string& note) {
  PlannedModels models;
  if (exists(directory)) {
    TrainConfig here = config;
    here.model = directory;
    models = planned_models(here);
  } else {
    const FoundModel found = model_of_hub_name(config.model);
    note = str("the model is not on this machine; its shape is of ", found.from);
    models = planned_models(config, found.config);
  }
  models.gpu = is_cpu(options) ? 0 : fit.memory;
  models.ranks = options.gpus;
  if (fit.device) models.driver = driver_memory(*fit.device, options.gpus, config.update.reduce == Reduce::micro);
  return models;
}

std::string bytes_words(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// The settings of the plan's remedies, until the peak fits.
std::vector<Setting> fitted(std::vector<Setting> settings, const PlannedModels& models, const Fit& fit) {
  const int64_t limit = static_cast<int64_t>(kMemoryShare * static_cast<double>(fit.memory));
  const TrainConfig config = make_train_config(settings);
  std::vector<Remedy> lower = remedies(config, models, limit, false);  // what has run first
  if (lower.empty() || lower.back().together > limit) lower = remedies(config, models, limit);
  const int64_t peak = plan_memory(config, models).peak();
  const auto alone = std::ranges::find_if(lower, [&](const Remedy& r) { return r.alone <= limit; });
  if (peak > limit && alone == lower.end() && (lower.empty() || lower.back().together > limit)) {
    throw Error(ErrorKind::limit,
                str("no settings make this training fit: the peak is ", bytes_words(peak), ", ",
                    lower.empty() ? ""
                                  : str(bytes_words(lower.back().together), " with ", lower.back().setting,
                                        " and all before it, "),
                    fit.of, " ", bytes_words(fit.memory), "; take a smaller model or a larger machine"));
  }
  if (peak <= limit) lower.clear();
  if (peak > limit && alone != lower.end()) lower = {*alone};
  for (const Remedy& remedy : lower) {
    const size_t equals = remedy.setting.find(" = ");
    settings.push_back(typed(remedy.setting.substr(0, equals), remedy.setting.substr(equals + 3)));
  }
  const bool given = std::ranges::find(settings, "optimizer.lr", &Setting::key) != settings.end();
  const TrainConfig made = make_train_config(settings);
  const auto rate = static_cast<float>(kAdapterRates * made.optimizer.lr);  // in few digits
  if (made.lora.on() && !given) settings.push_back(typed("optimizer.lr", str(rate)));
  return settings;
}

// Keys that everyone looks at, besides those that are no defaults.
constexpr std::string_view kShown =
    " model device dtype seed data.files data.val_files data.template data.max_prompt_length data.train_batch_size "
    "rollout.n rollout.temperature rollout.response_length lora.rank reward.grader reward.truncated method.name "
    "update.mini_batch_size update.micro_batch_tokens update.recompute optimizer.lr train.steps train.epochs "
    "train.save_freq train.test_freq ";

std::string commented_toml(const TrainConfig& config, const std::string& method) {
  const std::vector<FieldValue> usual = fields_of(make_train_config({typed("method.name", method)}));
  std::string top, tables, section;
  for (const FieldValue& field : fields_of(config)) {
    const auto at = std::ranges::find(usual, field.key, &FieldValue::key);
    const bool shown = kShown.find(str(" ", field.key, " ")) != std::string_view::npos;
    if (!shown && at != usual.end() && at->value == field.value) continue;
    const size_t dot = field.key.rfind('.');
    const std::string table = dot == std::string::npos ? "" : field.key.substr(0, dot);
    std::string& text = table.empty() ? top : tables;
    if (table != section && !table.empty()) text += str("\n[", table, "]\n");
    section = table;
    for (const std::string& part : split(wrap_text(field.help, 100, 0, 0), '\n')) text += str("# ", part, "\n");
    text += str(field.key.substr(dot == std::string::npos ? 0 : dot + 1), " = ", field.value, "\n");
  }
  return top + tables;
}

void check_options(const ConfigOptions& options) {
  if (options.model.empty()) throw Error(ErrorKind::usage, "config: --model DIR or ORG/NAME is missing");
  if (options.data.empty()) throw Error(ErrorKind::usage, "config: --data FILE or hf://ORG/SET/FILE is missing");
  if (options.gpus > 1 && is_cpu(options))
    throw Error(ErrorKind::usage, "--gpus N needs --gpu NAME, which GPU they are");
  if (!options.out.empty() && exists(options.out)) {
    throw Error(ErrorKind::path, str(printable(options.out, 400), ": exists already; config overwrites nothing"));
  }
}

// A config written for what the options name.
int write_config(std::vector<Setting> overrides) {
  ConfigOptions options;
  take_own(options, overrides);
  check_options(options);
  const Fit fit = fit_of(options);
  ConfigOptions here = options;  // paths in the place of names
  here.data = data_files(options.data);
  const bool there = exists(options.model) || !cached_file(options.model, "config.json").empty();
  if (there || !known_model(options.model)) here.model = checkpoint_directory(options.model);
  const std::string directory = exists(here.model) ? here.model : "";
  DataChoice data = look_at_data(here, directory.empty() ? "" : directory_with(directory, "tokenizer.json"),
                                 make_train_config(overrides).data.columns);
  if (!directory.empty())
    data.positions = read_model_config(directory_with(directory, "config.json")).max_position_embeddings;

  std::vector<Setting> settings = first_settings(options, data);
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  std::string note;
  TrainConfig config = make_train_config(settings);
  config.validate();
  settings = fitted(std::move(settings), models_of(config, here.model, fit, options, note), fit);
  config = make_train_config(settings);
  config.validate();
  const PlannedModels models = models_of(config, here.model, fit, options, note);  // as they are trained now

  const MemoryPlan plan = plan_memory(config, models);
  std::string text =
      str("# ", config.title(), " on ", printable(options.model, 200), ", written by ucas config.\n# Planned: peak ",
          bytes_words(plan.peak()), "; ", fit.of, " ", bytes_words(fit.memory), ".\n");
  if (fit.device) {
    const TimePlan time = plan_time(config, models, *fit.device, {});
    text += str("# A step takes ", human_seconds(time.step()), " by the plan, with responses as long as allowed.\n");
  }
  if (config.update.offload != Offload::none) text += "# update.offload is untried: it has never run on a GPU.\n";
  text += str("# ", many(data.problems, "problem"), data.note.empty() ? "" : "; " + data.note, ".\n");
  if (!note.empty()) text += str("# ", note, ".\n");
  text += str("#\n#   ucas explain ", options.out.empty() ? "my.toml" : options.out,
              "    what it does, equation by equation\n#   ucas train ", options.out.empty() ? "my.toml" : options.out,
              " --out runs/first", options.gpus > 1 ? str(" --gpus ", options.gpus) : "", "\n\n");
  text += commented_toml(config, options.method);
  make_train_config(parse_toml(text, "what ucas config wrote")).validate();
  if (options.out.empty()) {
    out(text);
  } else {
    write_output(options.out, text);
    log(str("config: ", options.out, ": peak ", bytes_words(plan.peak()), "; ", fit.of, " ", bytes_words(fit.memory)));
  }
  return kDone;
}

// "DAPO on the embedded task. Give it .." -> "DAPO on the embedded task"
std::string title_of(const std::string& about) {
  return about.substr(0, std::min(about.find(". "), about.find_last_not_of('.') + 1));
}

int list_configs(const std::string& pattern) {
  Table table{.align = "l"};
  for (const std::string& name : config_names()) {
    if (name.find(pattern) == std::string::npos) continue;
    table.add({name, title_of(read_config(name).about)});
  }
  if (table.rows.empty()) {
    throw Error(ErrorKind::usage, str("config: no embedded config's name holds ", printable(pattern),
                                      did_you_mean(pattern, config_names()), "; `ucas config` lists all"));
  }
  out(table.text());
  return kDone;
}

}  // namespace

std::string options_config() { return options_help(ConfigOptions{}); }

int run_config(const Words& words) {
  const CommandLine line = parse_command_line(words, {});
  if (line.positionals.empty() && !line.settings.empty()) return write_config(line.settings);
  if (line.positionals.size() > 1 || !line.settings.empty()) {
    throw Error(ErrorKind::usage,
                "config: expected one NAME or PATTERN, or --model and --data; see `ucas config --help`");
  }
  const std::string name = line.positionals.empty() ? "" : line.positionals[0];
  const std::vector<std::string> names = config_names();
  if (std::ranges::find(names, name) == names.end()) return list_configs(name);
  out(config_text(read_config(name)));
  return kDone;
}

}  // namespace ucas
