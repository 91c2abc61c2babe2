#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/engine/speaking.h"
#include "cli/evaluate_models.h"
#include "config/policy_options.h"
#include "evaluate/benchmark.h"
#include "evaluate/compare_table.h"
#include "evaluate/engine/evaluation.h"
#include "evaluate/table.h"
#include "hf/model_config.h"
#include "records/card.h"
#include "rollout/policy.h"
#include "train/agreement.h"
#include "train/fingerprint.h"
#include "train/shared_rollout.h"

namespace ucas {

namespace {

EvaluationPlan plan_of(const EvaluateOptions& options, const std::vector<Setting>& typed) {
  const auto said = [&](const char* key) {
    return std::any_of(typed.begin(), typed.end(), [&](const Setting& s) { return s.key == key; });
  };
  EvaluationPlan plan;
  plan.suite = options.suite;
  plan.files = options.data;
  plan.config = options.eval;
  if (!options.suite.empty()) {
    if (options.data.size() != 1) throw Error("usage", "--suite needs one --data DIR, where its files are");
    plan.data_directory = options.data[0];
    plan.files.clear();
    const Suite suite = load_suite(options.suite);
    plan.name = suite.name;
    if (suite.samples >= 0 && !said("samples")) plan.config.samples = suite.samples;
  }
  if (!options.name.empty()) plan.name = options.name;
  if (plan.name.find('/') != std::string::npos || plan.name[0] == '.') {
    throw Error("config", str("name = \"", printable(plan.name), "\": expected a name that can be a file name"));
  }
  if (!plan.config.greedy && plan.config.samples == 0) {
    throw Error("config", "greedy = false and samples = 0: nothing to evaluate; ask for one of them");
  }
  plan.prompt_template = options.prompt_template;
  plan.typed = command_settings(options, typed);
  plan.examples = options.examples;
  plan.max_prompt_length = 0;
  plan.limit = options.limit;
  plan.problems = options.problems;
  plan.grader = options.grader;
  plan.code = options.code;
  plan.engine = options.engine;
  plan.served = options.served;
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

// Of every model that rank 0 evaluates, in the same order: draws what it is told to.
int draw_for_leader(const EvaluationPlan& plan, const std::vector<ModelSettings>& models, Ranks& ranks) {
  for (const ModelSettings& model : models) {
    draw_for(plan, model.path, [&](Rollout& own) { follow_rollout(own, ranks, stop_requested); });
  }
  return kDone;
}

int evaluate_here(const EvaluateOptions& options, EvaluationPlan plan, const std::vector<ModelSettings>& models,
                  Ranks& ranks) {
  std::vector<EvalRecord> results;
  std::vector<std::string> labels;
  if (!ranks.alone()) plan.drawn_by = [&ranks](Rollout& own) { return lead_rollout(own, ranks); };
  for (const ModelSettings& model : models) {
    plan.model = model;
    labels.push_back(model.label);
    const std::string run = options.out.empty() ? "" : path_join(options.out, model.label);
    if (!run.empty()) refuse_links(options.out, {model.label});
    results.push_back(evaluate_model(plan, model.path, run, model.label));
    dismiss_followers(ranks);
    const EvalRecord& r = results.back();
    if (r.tokens == 0) continue;
    log(str(model.label, ": ", grouped(r.tokens), " tokens in ", human_seconds(r.seconds), ", ",
            grouped(static_cast<int64_t>(static_cast<double>(r.tokens) / std::max(r.seconds, 1e-9))), " tokens/s"));
  }
  out(plan.suite.empty() ? summary_table(results) : suite_table(results) + notes_of(load_suite(plan.suite)));
  if (results.size() > 1) out("\n" + comparison_text(results));
  if (!options.out.empty()) {
    for (const std::string& label : labels) {
      log(str(label, ": card ", card_name(path_join(path_join(options.out, label), "eval"), plan.name)));
    }
    log(str("written: ", options.out, "/", labels.size() == 1 ? labels[0] : "{" + join(labels, ",") + "}", "/eval/",
            plan.name, ".json, .jsonl, .outputs.jsonl, .card.json"));
  }
  return kDone;
}

struct EvaluateWords {
  EvaluateOptions options;
  EvaluationPlan plan;
  std::vector<ModelSettings> models;
};

EvaluateWords read_evaluate_words(const Words& words) {
  PolicyLine line = read_policy_line(words, {"data", "labels", "server", "responses", "stop"});
  const std::vector<Setting> of_models = take_model_settings(line);
  EvaluateWords asked;
  EvaluateOptions& options = asked.options;
  ucas::apply(options, line.settings);
  asked.models = read_models(with_others(line.positionals, options), options.labels, options.models, of_models);
  const bool all_given =
      std::ranges::all_of(asked.models, [](const ModelSettings& m) { return m.by == AnsweredBy::responses; });
  if (options.data.empty() && !(all_given && options.suite.empty())) {
    throw Error("usage", options.suite.empty() ? "--data FILE.jsonl is missing; see `ucas evaluate --help`"
                                               : "--data DIR is missing: where the suite's files are");
  }
  asked.plan = plan_of(options, line.settings);
  for (const ModelSettings& model : asked.models) {  // a wrong path is said before the work
    if (model.by == AnsweredBy::checkpoint) read_model_config(model.path);
  }
  return asked;
}

// What several ranks must have in common. Only rank 0 reads the data and is asked for anything but responses.
std::vector<std::string> lines_of(const EvaluateWords& asked) {
  std::vector<std::string> lines = {str("dtype = ", word_of(asked.plan.config.dtype)),
                                    str("device = ", kind_of_device(asked.plan.device))};
  for (const ModelSettings& model : asked.models) {
    lines.push_back(str("weights of ", model.label, " (hash) = ", hash_of_model(model.path)));
  }
  return lines;
}

int evaluate_by_ranks(EvaluateWords asked, Ranks& ranks) {
  const std::vector<std::string> lines = ranks.together("reading the models", [&] {
    if (std::ranges::any_of(asked.models, [](const auto& m) { return m.by != AnsweredBy::checkpoint; })) {
      throw Error("config",
                  "several ranks draw responses of checkpoints; responses of servers and files need one process");
    }
    asked.plan.device = device_of_rank(asked.plan.device, ranks.place().local, visible_cuda_devices());
    return lines_of(asked);
  });
  require_same(ranks, "comparing the ranks' evaluations", lines);
  if (!ranks.leads()) return draw_for_leader(asked.plan, asked.models, ranks);
  return evaluate_here(asked.options, asked.plan, asked.models, ranks);
}

}  // namespace

int run_evaluate(const Words& words) {
  return speaking_once([&] {
    const std::shared_ptr<Ranks> ranks = open_ranks();
    EvaluateWords asked = ranks->together("reading the options", [&] { return read_evaluate_words(words); });
    install_stop_signals();
    if (!ranks->alone()) return evaluate_by_ranks(std::move(asked), *ranks);
    return evaluate_here(asked.options, asked.plan, asked.models, *ranks);
  });
}

}  // namespace ucas
