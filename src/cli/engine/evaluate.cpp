#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "config/policy_options.h"
#include "config/run_evaluation.h"
#include "evaluate/benchmark.h"
#include "evaluate/engine/evaluation.h"
#include "evaluate/results/table.h"
#include "hf/hub.h"
#include "hf/model_config.h"
#include "records/run/run_directory.h"
#include "sharding/ranks.h"
#include "verify/audit/verify_rows.h"
#include "verify/registry.h"

namespace ucas {

namespace {

// "gsm8k-test", "dev+easy": what the result's files are called by.
std::string name_of_files(const std::vector<std::string>& files) {
  constexpr size_t kLongest = 80;
  std::vector<std::string> stems;
  for (const std::string& file : files) stems.push_back(data_stem(file));
  const std::string name = join(stems, "+");
  const bool usable = !name.empty() && name.size() <= kLongest && name[0] != '.';
  return usable ? name : "test";
}

EvaluationPlan plan_of(const EvaluateOptions& options, const std::vector<Setting>& typed) {
  const auto said = [&](const char* key) {
    return std::any_of(typed.begin(), typed.end(), [&](const Setting& s) { return s.key == key; });
  };
  EvaluationPlan plan;
  plan.suite = options.suite;
  plan.files = options.data;
  plan.config = options.eval;
  if (!options.suite.empty()) {
    if (options.data.size() > 1) throw Error(ErrorKind::usage, "--suite needs one --data DIR, where its files are");
    if (!options.data.empty()) plan.data_directory = options.data[0];
    plan.files.clear();
    const Suite suite = load_suite(options.suite);
    plan.name = suite.name;
    if (suite.samples >= 0 && !said("samples")) plan.config.samples = suite.samples;
  }
  if (options.suite.empty() && !options.data.empty()) plan.name = name_of_files(options.data);
  if (!options.name.empty()) plan.name = options.name;
  if (plan.name.find('/') != std::string::npos || plan.name[0] == '.') {
    throw Error(ErrorKind::config,
                str("name = \"", printable(plan.name), "\": expected a name that can be a file name"));
  }
  if (!plan.config.greedy && plan.config.samples == 0) {
    throw Error(ErrorKind::config, "greedy = false and samples = 0: nothing to evaluate; ask for one of them");
  }
  plan.prompt_template = options.prompt_template;
  plan.typed = command_settings(options, typed);
  plan.examples = options.examples;
  plan.max_prompt_length = 0;
  plan.limit = options.limit;
  plan.problems = options.problems;
  plan.grader = options.grader;
  plan.graders = parse_graders(options.graders, "graders");
  plan.code = options.code;
  plan.engine = options.engine;
  plan.environment = options.environment;
  plan.device = options.machine.device;
  plan.threads = options.machine.threads;
  return plan;
}

// What a reader of the table must know.
std::string notes_of(const Suite& suite) {
  std::string text;
  if (!suite.note.empty()) text += str(suite.note, "\n");
  for (const Benchmark& benchmark : suite.benchmarks) {
    if (!benchmark.note.empty()) text += str(benchmark.name, ": ", benchmark.note, "\n");
  }
  return text.empty() ? "" : "\n" + text;
}

// Where the answers of most responses to a set were not found: what they look like, and what would find them.
void warn_of_unreadable(const EvalRecord& record) {
  for (const auto& [source, by] : record.graded_by) {
    const EvalNumbers* numbers = record.by_source.empty() ? &record : record.of(source);
    if (numbers == nullptr || !(numbers->unparseable > kManyUnreadable) || by.first == GraderKind::choice) continue;
    std::vector<std::string_view> texts;
    const auto look_at = [&](const SampledResponse& response) {
      if (response.verdict == VerdictKind::unparseable) texts.push_back(response.response);
    };
    for (const ProblemRow& row : record.rows) {
      if (row.source != source) continue;
      if (row.greedy) look_at(*row.greedy);
      for (const SampledResponse& response : row.responses) look_at(response);
    }
    const int64_t each = record.config.samples > 0 ? record.config.samples : 1;
    warn(str(
        record.label, ", ", source, ": ",
        unreadable_in_words(numbers->unparseable, numbers->problems * each, texts, by.first, by.second, "--extract")));
  }
}

// The weights of the newest checkpoint of a run.
std::string newest_model(const std::string& run) {
  const std::string folder = path_join(run, "checkpoints");
  std::string newest;
  for (const std::string& name : list_directory(folder)) {  // in order
    const std::string path = path_join(folder, name);
    const bool whole = exists(path_join(path, "config.json")) || exists(path_join(path, "adapter_config.json"));
    if (parse_step_name(name) >= 0 && whole) newest = path;
  }
  if (newest.empty())
    throw Error(ErrorKind::path, str(printable(folder, 400), ": no checkpoint yet; give the directory of a model"));
  return newest;
}

// What the run that models belong to says of an evaluation, and what is to be said of that.
struct OfRuns {
  std::vector<Setting> settings;
  std::vector<std::string> runs, models, warnings;
  std::vector<std::string> differing;  // keys of settings that the runs do not share
};

// Puts the newest checkpoint in the place of a run's directory. Runs give the settings that all of them have.
OfRuns settings_of_runs(std::vector<EvaluatedModel>& models, bool suite) {
  static const std::set<std::string> kOfSuites = {"template",     "few_shot",    "shots",     "stop",
                                                  "dtype",        "environment", "max_turns", "tool_state",
                                                  "tool_seconds", "tool_chars",  "tools"};
  OfRuns out;
  std::map<std::string, std::vector<std::string>> values;
  size_t read = 0;
  for (EvaluatedModel& model : models) {
    const std::string run = model.is_responses ? "" : run_of_model(model.path);
    if (run.empty()) continue;
    if (is_directory(path_join(model.path, "checkpoints"))) {
      model.path = newest_model(run);
      out.models.push_back(str(model.label, ": ", model.path));
    }
    const std::string config = path_join(run, "config.toml");
    try {
      out.settings = evaluation_settings(make_train_config(read_toml(config)));
    } catch (const Error& error) {
      out.warnings.push_back(str("its settings are not taken: ", error.what()));
      continue;
    }
    if (suite) std::erase_if(out.settings, [](const Setting& s) { return !kOfSuites.contains(s.key); });
    if (std::ranges::find(out.runs, config) == out.runs.end()) out.runs.push_back(config);
    ++read;
    for (const Setting& s : out.settings) values[s.key].push_back(std::get<std::string>(s.value));
  }
  for (const auto& [key, of_run] : values) {
    if (of_run.size() == read && std::ranges::count(of_run, of_run.front()) == std::ssize(of_run)) continue;
    out.differing.push_back(key);
    std::erase_if(out.settings, [&](const Setting& s) { return s.key == key; });
  }
  for (Setting& s : out.settings) s.where = str(out.runs.front(), ": ", s.where);
  return out;
}

// Those that were not typed, before those that were; the problem files only where none were named, and how many samples
// there are is said by the command alone.
std::vector<Setting> with_settings_of_runs(OfRuns& of_runs, const std::vector<Setting>& typed) {
  const auto has = [&](const std::string& key) { return std::ranges::find(typed, key, &Setting::key) != typed.end(); };
  const auto not_taken = [&](const std::string& key) {
    const bool of_files = key == "data" || key == "limit";
    const bool sampled = key == "samples" || key == "temperature";
    return has(key) || sampled || (of_files && (has("data") || has("suite")));
  };
  std::erase_if(of_runs.settings, [&](const Setting& s) { return not_taken(s.key); });
  std::erase_if(of_runs.differing, not_taken);
  if (!of_runs.differing.empty()) {
    of_runs.warnings.push_back(str("the runs differ in --", join(of_runs.differing, ", --"),
                                   ", not taken from them: type what holds for all, or evaluate them apart"));
  }
  std::vector<Setting> all = of_runs.settings;
  all.insert(all.end(), typed.begin(), typed.end());
  return all;
}

void say(const OfRuns& of_runs) {
  std::string words;
  for (const Setting& s : of_runs.settings) {
    words += str(" --", s.key, " ", shell_word(std::get<std::string>(s.value)));
  }
  if (!words.empty()) log(str("as ", join(of_runs.runs, " and "), of_runs.runs.size() > 1 ? " say:" : " says:", words));
  for (const std::string& model : of_runs.models) log(model);
  for (const std::string& warning : of_runs.warnings) warn(warning);
}

void print_tables(const EvaluationPlan& plan, const std::vector<EvalRecord>& results) {
  out(plan.suite.empty() ? summary_table(results) : suite_table(results) + notes_of(load_suite(plan.suite)));
  if (results.size() > 1) out("\n" + comparison_text(results));
}

int evaluate_models(const EvaluateOptions& options, EvaluationPlan plan, const std::vector<EvaluatedModel>& models) {
  std::vector<EvalRecord> results;
  std::vector<std::string> labels;
  for (const EvaluatedModel& model : models) {
    plan.model = model;
    labels.push_back(model.label);
    const std::string run = options.out.empty() ? "" : path_join(options.out, model.label);
    if (!run.empty()) refuse_links(options.out, {model.label});
    results.push_back(evaluate_model(plan, model.path, run, model.label));
    const EvalRecord& r = results.back();
    warn_of_unreadable(r);
    if (r.tokens == 0) continue;
    log(str(model.label, ": ", grouped(r.tokens), " tokens in ", human_seconds(r.seconds), ", ",
            grouped(static_cast<int64_t>(static_cast<double>(r.tokens) / std::max(r.seconds, 1e-9))), " tokens/s"));
  }
  print_tables(plan, results);
  if (!options.out.empty()) {
    log(str("written: ", options.out, "/", labels.size() == 1 ? labels[0] : "{" + join(labels, ",") + "}", "/eval/",
            plan.name, ".json, .jsonl, .outputs.jsonl"));
  }
  return kDone;
}

struct EvaluateWords {
  EvaluateOptions options;
  EvaluationPlan plan;
  std::vector<EvaluatedModel> models;
  OfRuns of_runs;
};

EvaluateWords read_evaluate_words(const Words& words) {
  PolicyLine line = read_policy_line(words, {"data", "responses", "stop", "tools"});
  EvaluateWords asked;
  EvaluateOptions& options = asked.options;
  ucas::apply(options, line.settings);
  asked.models = read_models(line.positionals, options.responses);
  for (EvaluatedModel& model : asked.models) {
    if (!model.is_responses) model.path = checkpoint_directory(model.path);
  }
  asked.of_runs = settings_of_runs(asked.models, !options.suite.empty());
  const bool columns = std::ranges::any_of(line.settings, [](auto& s) { return s.key.starts_with("columns."); });
  line.settings = with_settings_of_runs(asked.of_runs, line.settings);
  options = EvaluateOptions{};
  ucas::apply(options, line.settings);
  options.eval.dtype = decided(options.eval.dtype, options.machine.device);
  resolve_hub_names(options);
  const bool all_given = std::ranges::all_of(asked.models, &EvaluatedModel::is_responses);
  if (options.data.empty() && !(all_given && options.suite.empty())) {
    throw Error(ErrorKind::usage, options.suite.empty() ? "--data FILE.jsonl is missing; see `ucas evaluate --help`"
                                                        : "--data DIR is missing: where the suite's files are");
  }
  asked.plan = plan_of(options, line.settings);
  asked.plan.problems.columns_where_there = !columns;  // a run's; other files may have the usual names
  for (const EvaluatedModel& model : asked.models) {   // a wrong path is reported before the work
    if (!model.is_responses) read_model_config(model.path);
  }
  return asked;
}

void check_environment(const EvaluateWords& asked) {
  const EvaluationPlan& plan = asked.plan;
  if (!plan.environment.some()) return;
  const auto refuse = [&](const std::string& with, const std::string& instead) {
    throw Error(ErrorKind::config, str(plan.environment.name(), " with ", with, ": ", instead));
  };
  for (const EvaluatedModel& model : asked.models) {
    if (model.is_responses) {
      refuse(str("responses of ", printable(model.label)), "it answers checkpoints alone; evaluate the other apart");
    }
  }
}

}  // namespace

int run_evaluate(const Words& words) {
  if (rank_of_environment() > 0) return kDone;  // of several ranks the first does it all
  EvaluateWords asked = read_evaluate_words(words);
  check_environment(asked);
  install_stop_signals();
  say(asked.of_runs);
  return evaluate_models(asked.options, std::move(asked.plan), asked.models);
}

}  // namespace ucas
