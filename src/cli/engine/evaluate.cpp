#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/engine/evaluation.h"
#include "cli/policy_options.h"
#include "evaluate/benchmark.h"
#include "evaluate/table.h"
#include "model/qwen2_config.h"
#include "train/trainer.h"

namespace ucas {

namespace {

// The last part of a path, or the last two for a checkpoint of a run: runs/dapo/checkpoints/step-0000024 is
// "dapo-step-0000024".
std::string label_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::vector<std::string> parts;
  for (const std::string& part : split(path, '/')) {
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  if (parts.empty()) return "model";
  if (parts.size() >= 3 && parts[parts.size() - 2] == "checkpoints") {
    return parts[parts.size() - 3] + "-" + parts.back();
  }
  return parts.back();
}

std::vector<std::string> labels_of(const EvaluateOptions& options, const std::vector<std::string>& models) {
  std::vector<std::string> labels = options.labels;
  if (!labels.empty() && labels.size() != models.size()) {
    throw Error("config", str("labels: ", labels.size(), " names for ", models.size(), " models; give one for each"));
  }
  if (labels.empty()) {
    for (const std::string& model : models) {
      std::string label = label_of(model);
      int64_t n = 1;
      while (std::find(labels.begin(), labels.end(), label) != labels.end()) label = str(label_of(model), "-", ++n);
      labels.push_back(label);
    }
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool twice = std::find(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(i), labels[i]) !=
                       labels.begin() + static_cast<std::ptrdiff_t>(i);
    if (!twice && !labels[i].empty() && labels[i].find('/') == std::string::npos && labels[i][0] != '.') continue;
    throw Error("config",
                str("labels: \"", printable(labels[i]), "\": expected different names that can be file names"));
  }
  return labels;
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
  if (said("template")) plan.typed.prompt_template = options.prompt_template;
  if (said("max_tokens")) plan.typed.max_tokens = options.eval.max_tokens;
  if (said("extract")) plan.typed.extract = options.extract;
  plan.max_prompt_length = 0;
  plan.limit = options.limit;
  plan.problems = options.problems;
  plan.engine = options.engine;
  plan.device = options.machine.device;
  plan.threads = options.machine.threads;
  return plan;
}

}  // namespace

int run_evaluate(const Words& words) {
  const PolicyLine line = read_policy_line(words, {"data", "labels"});
  EvaluateOptions options;
  ucas::apply(options, line.settings);
  const std::vector<std::string>& models = line.positionals;
  if (models.empty()) throw Error("usage", "no MODEL directory given; see `ucas evaluate --help`");
  if (options.data.empty()) {
    throw Error("usage", options.suite.empty() ? "--data FILE.jsonl is missing; see `ucas evaluate --help`"
                                               : "--data DIR is missing: where the suite's files are");
  }
  const std::vector<std::string> labels = labels_of(options, models);
  const EvaluationPlan plan = plan_of(options, line.settings);
  for (const std::string& model : models) read_qwen2_config(model);  // a wrong path is said before the work
  install_stop_signals();

  std::vector<EvalResult> results;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string run = options.out.empty() ? "" : path_join(options.out, labels[i]);
    if (!run.empty()) write_evaluated_environment(plan, models[i], run, labels[i]);
    results.push_back(evaluate_model(plan, models[i], run, labels[i]));
    const EvalResult& r = results.back();
    if (r.tokens == 0) continue;
    log(str(labels[i], ": ", grouped(r.tokens), " tokens in ", human_seconds(r.seconds), ", ",
            grouped(static_cast<int64_t>(static_cast<double>(r.tokens) / std::max(r.seconds, 1e-9))), " tokens/s"));
  }
  out(summary_table(results));
  if (!options.out.empty()) {
    log(str("written: ", options.out, "/", labels.size() == 1 ? labels[0] : "{" + join(labels, ",") + "}", "/eval/",
            plan.name, ".json, .jsonl, .outputs.jsonl, .card.json"));
  }
  return kDone;
}

}  // namespace ucas
