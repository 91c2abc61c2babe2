#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/engine/prompts.h"
#include "cli/policy_options.h"
#include "evaluate/evaluator.h"
#include "evaluate/table.h"
#include "rollout/engine.h"

namespace ucas {

namespace {

std::string stem(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  return name.substr(0, name.rfind('.') == 0 ? std::string::npos : name.rfind('.'));
}

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

EvalResult evaluate_model(const std::string& directory, const std::string& label, const std::vector<Problem>& problems,
                          const EvaluateOptions& options, const Template& form) {
  const Policy policy = open_policy(directory, parse_device(options.machine.device));
  const Questions questions = encode_questions(problems, form, policy, options.eval.max_tokens);
  const auto engine = make_engine(*policy.model, options.engine);
  const auto verifier = make_math_verifier(options.extract);
  EvalInput input;
  input.problems = questions.problems;
  input.prompts = questions.prompts;
  input.stop_ids = questions.stop_ids;
  input.label = label;
  input.model = directory;
  for (const std::string& file : options.data) input.data.push_back(stem(file));
  EvalResult result = evaluate(*engine, policy.tokenizer, *verifier, input, options.eval);
  log(str(label, ": ", grouped(result.tokens), " tokens in ", human_seconds(result.seconds), ", ",
          grouped(static_cast<int64_t>(static_cast<double>(result.tokens) / std::max(result.seconds, 1e-9))),
          " tokens/s"));
  return result;
}

}  // namespace

int run_evaluate(const Words& words) {
  const PolicyLine line = read_policy_line(words, {"data", "labels"});
  EvaluateOptions options;
  ucas::apply(options, line.settings);
  const std::vector<std::string>& models = line.positionals;
  if (models.empty()) throw Error("usage", "no MODEL directory given; see `ucas evaluate --help`");
  if (options.data.empty()) throw Error("usage", "--data FILE.jsonl is missing; see `ucas evaluate --help`");
  if (!options.eval.greedy && options.eval.samples == 0) {
    throw Error("config", "greedy = false and samples = 0: nothing to evaluate; ask for one of them");
  }
  const std::vector<std::string> labels = labels_of(options, models);
  use_threads(options.machine.threads);
  const Template form = load_template(options.prompt_template);
  const std::vector<Problem> problems = read_limited(options.data, options.limit, options.problems);
  for (const std::string& model : models) read_qwen2_config(model);  // a wrong path is said before the work

  std::vector<EvalResult> results;
  for (size_t i = 0; i < models.size(); ++i) {
    results.push_back(evaluate_model(models[i], labels[i], problems, options, form));
    if (!options.out.empty()) write_result(results.back(), options.out, labels[i]);
  }
  out(summary_table(results));
  if (!options.out.empty()) {
    log(str("written: ", options.out, "/", labels.size() == 1 ? labels[0] : "{" + join(labels, ",") + "}",
            ".json and .jsonl"));
  }
  return kDone;
}

}  // namespace ucas
