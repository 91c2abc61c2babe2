// `ucas study NAME --check`: everything that a study reads, read; every run that it would make, named. Starts nothing.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "config/prompt_choice.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "evaluate/benchmark.h"
#include "hf/model_config.h"
#include "results/table.h"
#include "study/engine/plan.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

std::vector<Problem> problems_of(const EvaluationPlan& plan) {
  if (plan.suite.empty()) return read_problems(plan.files);
  std::vector<Problem> problems;
  for (const Benchmark& benchmark : load_suite(plan.suite).benchmarks) {
    for (Problem& problem : read_benchmark(benchmark, plan.data_directory)) problems.push_back(std::move(problem));
  }
  return problems;
}

// How many there are; how many prompts are too long is said.
std::string problems_text(const std::string& what, const std::vector<Problem>& problems, const Tokenizer& tokenizer,
                          const std::string& asked, int64_t longest) {
  const std::string form = choose_template(asked, tokenizer.directory(), "qwen_math");
  PreparedPrompts prompts = prepare_prompts(load_template(form, tokenizer.directory()), problems, tokenizer, longest);
  return str(pad_right(what, 10), grouped(std::ssize(prompts.ids)), " problems, template ", form,
             prompts.dropped > 0 ? str("; ", prompts.dropped, " prompts longer than ", longest, " are left out") : "",
             "\n");
}

// What is to be drawn of single problems and sets must be among those that are evaluated.
void check_choices(const StudyConfig& c, const std::vector<Problem>& problems) {
  std::set<std::string> ids, sources;
  for (const Problem& problem : problems) {
    ids.insert(problem.id);
    sources.insert(problem.source);
  }
  const auto check = [](const char* key, const std::vector<std::string>& asked, const std::set<std::string>& known) {
    for (const std::string& one : asked) {
      if (!known.contains(one)) {
        throw Error(ErrorKind::config, str(key, ": the evaluation has no \"", printable(one), "\""));
      }
    }
  };
  check("problems", c.problems, ids);
  check("sources", c.sources, sources);
}

std::string checkpoint_text(const StudyPlan& plan) {
  const StudyBase& base = plan.config().base;
  const ModelConfig shape = read_model_config(base.model);
  const Tokenizer tokenizer = Tokenizer::load(base.model);
  for (const StudyTask& task : plan.tasks()) {
    const int64_t longest = task.train.data.max_prompt_length + task.train.rollout.response_length;
    if (longest > shape.max_position_embeddings) {
      throw Error(ErrorKind::config, str(task.row, ": data.max_prompt_length + rollout.response_length = ", longest,
                                         " is more than the model's ", shape.max_position_embeddings, " positions"));
    }
  }
  std::string text = str(pad_right("base", 10), base.model, ": ", grouped(shape.parameter_count()), " parameters\n");
  if (!base.tasks.empty() && !is_directory(plan.text_tasks_home())) {
    return text + str(pad_right("tasks", 10), join(base.tasks, ", "), ", to be made in ", plan.text_tasks_home(), "\n");
  }
  const auto& data = plan.tasks().front().train.data;
  text += problems_text("train", read_problems(base.train), tokenizer, data.prompt_template, data.max_prompt_length);
  const EvaluationPlan& evaluation = plan.base_evaluation();
  const std::vector<Problem> problems = problems_of(evaluation);
  check_choices(plan.config(), problems);
  return text + problems_text("test", problems, tokenizer, evaluation.prompt_template,
                              shape.max_position_embeddings - evaluation.config.max_tokens);
}

std::string state_of(const StudyTask& task) {
  if (exists(path_join(task.path, str("eval/", task.evaluation.name, ".json")))) return "done";
  if (exists(path_join(task.path, "done"))) return "trained, to be evaluated";
  return exists(path_join(task.path, "steps.jsonl")) ? "begun" : "to do";
}

}  // namespace

std::string check_study(const StudyPlan& plan) {
  const StudyConfig& c = plan.config();
  std::string text = str("study ", plan.study().name, ": ", c.title, " (", join(c.kind, ", "), ")\n\n");
  if (!c.base.embedded()) text += checkpoint_text(plan);
  for (const StudyStart& start : plan.starts()) {
    if (!c.base.embedded()) break;
    const bool there = exists(path_join(start.model, "config.json"));
    text += str(pad_right("base", 10), "the embedded task, warm-up from seed ", start.seed, there ? "" : ", to be made",
                "\n");
  }
  std::set<std::string> seen;
  int64_t todo = 0;
  Table table{.align = "l"};
  for (const StudyTask& task : plan.tasks()) {
    const TrainConfig& t = task.train;
    const bool first = seen.insert(task.path).second;
    const std::string state = first ? state_of(task) : "the run of a row above";
    const std::string length = t.train.steps > 0 ? many(t.train.steps, "step") : str(many(t.train.epochs, "epoch"));
    table.add({task.id, task.title, str(length, " of ", t.gen_batch(), " x ", t.rollout.n), task.path, state});
    todo += first && state != "done";
  }
  return str(text, "\n", table.text(), "\n", seen.size(), " runs, ", todo, " to do; ", c.jobs,
             c.jobs == 1 ? " process" : " processes", " of ", plan.threads(), " threads\nresults ",
             path_join(c.out, "results.md"), c.table.empty() ? "" : ", " + c.table,
             "\nEverything was read and fits together; nothing was started.\n");
}

}  // namespace ucas
