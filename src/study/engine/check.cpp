// `ucas study NAME --check`: everything that a study reads, read; everything that it would do, counted. Starts nothing.
#include <algorithm>
#include <map>
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
#include "study/engine/text_tasks.h"
#include "study/jobs.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

std::string line(const std::string& what, const std::string& text) { return str(pad_right(what, 10), text, "\n"); }

std::vector<Problem> problems_of(const EvaluationPlan& plan) {
  std::vector<Problem> problems;
  auto add = [&](std::vector<Problem> all) {
    if (plan.limit > 0 && static_cast<int64_t>(all.size()) > plan.limit) all.resize(static_cast<size_t>(plan.limit));
    for (Problem& problem : all) problems.push_back(std::move(problem));
  };
  if (plan.suite.empty()) {
    add(read_problems(plan.files));
  } else {
    for (const Benchmark& benchmark : load_suite(plan.suite).benchmarks) {
      add(read_benchmark(benchmark, plan.data_directory));
    }
  }
  return problems;
}

// How many there are; how many prompts are too long is said.
std::string problems_text(const std::string& what, const std::vector<Problem>& problems, const Tokenizer& tokenizer,
                          const std::string& asked, int64_t longest, int64_t& usable) {
  const std::string form = choose_template(asked, tokenizer.directory(), "qwen_math");
  PreparedPrompts prompts = prepare_prompts(load_template(form, tokenizer.directory()), problems, tokenizer, longest);
  usable = static_cast<int64_t>(prompts.ids.size());
  size_t most = 0;
  for (const std::vector<int32_t>& ids : prompts.ids) most = std::max(most, ids.size());
  return str(what, ": ", grouped(usable), " problems, prompts of at most ", most, " tokens (", form, ")",
             prompts.dropped > 0 ? str("; ", prompts.dropped, " longer than ", longest, " are left out") : "");
}

int64_t steps_of(const TrainConfig& c, int64_t problems) {
  if (c.train.steps > 0) return c.train.steps;
  return (problems * c.train.epochs + c.gen_batch() - 1) / c.gen_batch();
}

std::string scale(double tokens) {
  if (tokens >= 1e9) return fixed(tokens / 1e9, 1) + " billion";
  if (tokens >= 1e6) return fixed(tokens / 1e6, 1) + " million";
  return grouped(static_cast<int64_t>(tokens));
}

struct Counts {
  int64_t train = 0, test = 0;
};

// What is to be drawn of single problems and sets must be among those that are evaluated.
void check_choices(const StudyConfig& c, const std::vector<Problem>& problems) {
  std::set<std::string> ids, sources;
  for (const Problem& problem : problems) {
    ids.insert(problem.id);
    sources.insert(problem.source);
  }
  for (const std::string& id : c.problems) {
    if (!ids.contains(id)) {
      throw Error(ErrorKind::config,
                  str("problems: \"", printable(id), "\" is not the id of a problem of the evaluation"));
    }
  }
  for (const std::string& source : c.sources) {
    if (!sources.contains(source)) {
      throw Error(ErrorKind::config,
                  str("sources: \"", printable(source), "\" is not a set of the evaluation; there is ",
                      join({sources.begin(), sources.end()}, ", ")));
    }
  }
}

std::string given_base(const StudyPlan& plan, Counts& counts) {
  const StudyBase& base = plan.config().base;
  const TrainConfig& first = plan.tasks().front().train;
  ModelConfig shape = read_model_config(base.model);
  Tokenizer tokenizer = Tokenizer::load(base.model);
  std::string text = line("base", str(base.model, ": ", grouped(shape.parameter_count()), " parameters, ",
                                      shape.num_hidden_layers, " layers of ", shape.hidden_size, ", ",
                                      shape.torch_dtype, ", ", grouped(shape.max_position_embeddings),
                                      " positions; tokenizer of ", grouped(tokenizer.vocab_size()), " tokens"));
  if (tokenizer.vocab_size() > shape.vocab_size) {
    throw Error(ErrorKind::tokenizer,
                str(base.model, ": its tokenizer has ", tokenizer.vocab_size(), " tokens, its model ", shape.vocab_size,
                    " rows: they do not belong together"));
  }
  std::set<std::string> forms;
  for (const StudyTask& task : plan.tasks()) {
    const TrainConfig& c = task.train;
    int64_t longest = c.data.max_prompt_length + c.rollout.response_length;
    if (longest > shape.max_position_embeddings) {
      throw Error(ErrorKind::config, str(task.row, ": data.max_prompt_length + rollout.response_length = ", longest,
                                         " is more than the model's ", shape.max_position_embeddings, " positions"));
    }
    if (!forms.insert(str(c.data.prompt_template, "/", c.data.max_prompt_length)).second) continue;
    text += line("train", problems_text(join(base.train, ", "), read_problems(base.train), tokenizer,
                                        c.data.prompt_template, c.data.max_prompt_length, counts.train));
  }
  int64_t ignored = 0;
  if (!base.val.empty()) {
    text += line("val", problems_text(join(base.val, ", "), read_problems(base.val), tokenizer,
                                      first.data.prompt_template, first.data.max_prompt_length, ignored));
  }
  const EvaluationPlan& evaluation = plan.base_evaluation();
  std::string what = base.suite.empty() ? join(base.test, ", ") : "suite " + base.suite;
  if (!base.suite.empty()) {
    std::vector<std::string> names;
    for (const Benchmark& benchmark : load_suite(base.suite).benchmarks) names.push_back(benchmark.name);
    what += str(" (", join(names, ", "), ")");
  }
  if (evaluation.config.max_tokens >= shape.max_position_embeddings) {
    throw Error(ErrorKind::config, str("evaluate.max_tokens = ", evaluation.config.max_tokens,
                                       " leaves no room for a prompt: ", base.model, " has ",
                                       shape.max_position_embeddings, " positions"));
  }
  const std::vector<Problem> problems = problems_of(evaluation);
  check_choices(plan.config(), problems);
  text += line("test", problems_text(what, problems, tokenizer, evaluation.prompt_template,
                                     shape.max_position_embeddings - 1, counts.test));
  for (const StudyBaseRow& row : plan.base_rows()) {
    text += line("", problems_text(row.row, problems, tokenizer, row.evaluation.prompt_template,
                                   shape.max_position_embeddings - 1, ignored));
  }
  return text;
}

// Of base.tasks, before they are made.
std::string tasks_to_make(const StudyPlan& plan, Counts& counts) {
  const StudyBase& base = plan.config().base;
  const auto tasks = static_cast<int64_t>(base.tasks.size());
  const TextTaskOptions& o = base.task_options;
  counts = {tasks * o.count_train, tasks * o.count_test};
  return line("base", base.model) +
         line("tasks",
              str(join(base.tasks, ", "), ": ", grouped(o.count_train), " training, ", grouped(o.count_dev),
                  " dev and ", grouped(o.count_test), " test problems each; to be made in ", plan.text_tasks_home()));
}

std::string embedded_base_text(const StudyPlan& plan, Counts& counts) {
  std::string text;
  for (const StudyStart& start : plan.starts()) {
    EmbeddedBase base = plan.embedded_base(start);
    counts = {base.task.count_train, base.task.count_test};
    text += line("base", str("the embedded task, ", grouped(base.worked_steps), " + ", grouped(base.mixed_steps),
                             " warm-up updates from seed ", start.seed, "; ",
                             exists(path_join(base.model_directory, "config.json")) ? "there already" : "to be made"));
  }
  const TaskOptions task = plan.embedded_base(plan.starts()[0]).task;
  return text + line("train", str(grouped(counts.train), " problems")) + line("val", str(task.count_dev, " problems")) +
         line("test", str(grouped(counts.test), " problems"));
}

std::string state_of(const StudyTask& task) {
  if (exists(path_join(task.path, str("eval/", task.evaluation.name, ".json")))) return "done";
  if (exists(path_join(task.path, "done"))) return "trained, to be evaluated";
  int64_t step = last_step(task.path);
  return step > 0 ? str("begun, at step ", step) : "to do";
}

}  // namespace

std::string check_study(const StudyPlan& plan) {
  const StudyConfig& c = plan.config();
  Counts counts;
  std::string text = str("study ", plan.study().name, ": ", c.title, " (", join(c.kind, ", "), ")\n\n");
  const bool to_make = !c.base.tasks.empty() && !exists(text_task_shots(plan.text_tasks_home()));
  text += c.base.embedded() ? embedded_base_text(plan, counts)
          : to_make         ? tasks_to_make(plan, counts)
                            : given_base(plan, counts);
  const EvalConfig& e = plan.tasks().front().evaluation.config;
  const int64_t of_base = plan.base_evaluation().config.samples;
  double each = static_cast<double>(counts.test) * static_cast<double>((e.greedy ? 1 : 0) + e.samples) *
                static_cast<double>(e.max_tokens);
  text += line("evaluate", str(e.greedy ? "greedy" : "", e.greedy && e.samples > 0 ? " and " : "",
                               e.samples > 0 ? str(e.samples, " samples at temperature ", e.temperature) : "",
                               of_base > e.samples ? str(" (", grouped(of_base), " from the base)") : "", ", at most ",
                               e.max_tokens, " tokens a response: at most ", scale(each), " tokens a model"));
  text += "\n";
  std::set<std::string> seen;
  int64_t todo = 0, steps = 0;
  double tokens = 0;
  Table table{.align = "l"};
  for (const StudyTask& task : plan.tasks()) {
    const TrainConfig& t = task.train;
    int64_t of_run = steps_of(t, counts.train);
    double run_tokens = static_cast<double>(of_run) * static_cast<double>(t.gen_batch()) *
                        static_cast<double>(t.rollout.n) * static_cast<double>(t.rollout.response_length);
    std::string state = state_of(task);
    const bool first = seen.insert(task.path).second;
    if (!first) state = "the run of a row above";
    table.add(
        {task.id, task.title, str(grouped(of_run), " steps of ", t.gen_batch(), " x ", t.rollout.n), task.path, state});
    if (!first || state == "done") continue;
    ++todo;
    steps += of_run;
    tokens += run_tokens;
  }
  text += table.text();
  text +=
      str("\n", seen.size(), " runs, ", todo, " to do: ", grouped(steps), " steps, at most ", scale(tokens),
          " tokens generated in training (one generation batch a step) and ", scale(each * static_cast<double>(todo)),
          " in their evaluation; ", c.jobs, c.jobs == 1 ? " job" : " jobs", " of ", plan.threads(), " threads\n");
  text += str("results ", plan.places().results("md"), ", .csv, .tex, ", plan.places().report(),
              c.table.empty() ? "" : ", " + c.table, "\n");
  return text + "Everything was read and fits together; nothing was started.\n";
}

}  // namespace ucas
