#include "study/engine/plan.h"

#include <algorithm>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "config/config_file.h"
#include "data/problems.h"
#include "evaluate/benchmark.h"
#include "results/table.h"
#include "study/engine/text_tasks.h"
#include "verify/registry.h"

namespace ucas {

namespace {

constexpr int64_t kSampledBytes = int64_t{1} << 20;

// Of a checkpoint's files. Weights of many gigabytes are known by size, first and last megabyte: this hash
// distinguishes bases, it does not vouch for them.
std::string hash_of_checkpoint(const std::string& directory) {
  if (!is_directory(directory)) {
    throw Error(ErrorKind::path,
                str(printable(directory, 400), ": no such directory, expected a Hugging Face checkpoint"));
  }
  std::string text;
  for (const std::string& name : list_directory(directory)) {
    std::string path = path_join(directory, name);
    if (is_directory(path)) continue;
    int64_t size = file_size(path);
    if (name.ends_with(".json") || name.ends_with(".txt")) {
      text += str(name, " ", hash_of_file(path), "\n");
    } else if (name.ends_with(".safetensors")) {
      std::string ends(static_cast<size_t>(std::min(size, 2 * kSampledBytes)), '\0');
      int64_t first = std::min(size, kSampledBytes), last = static_cast<int64_t>(ends.size()) - first;
      read_at(path, 0, ends.data(), first);
      read_at(path, size - last, ends.data() + first, last);
      text += str(name, " ", size, " ", hash_of_text(ends), "\n");
    }
  }
  return hash_of_text(text);
}

std::string hash_of_files(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += hash_of_file(file) + "\n";
  return hash_of_text(text);
}

template <class Config, class Counts>
std::string settings_that(Counts counts, const Config& config) {
  std::string text;
  for (const FieldValue& field : fields_of(config)) {
    if (counts(field)) text += str(field.key, "=", field.value, "\n");
  }
  return text;
}

}  // namespace

StudyPlan::StudyPlan(Study study) : study_(std::move(study)) {
  StudyConfig& c = study_.config;
  find_starts();
  if (!c.base.tasks.empty()) {
    data_hash_ = text_tasks_hash(c.base);
    c.base.train = text_task_files(c.base, text_tasks_home(), "train.jsonl");
    c.base.val = text_task_files(c.base, text_tasks_home(), "dev.jsonl");
    c.base.test = text_task_files(c.base, text_tasks_home(), "test.jsonl");
  } else if (!c.base.embedded()) {
    std::vector<std::string> files = c.base.train;
    files.insert(files.end(), c.base.val.begin(), c.base.val.end());
    data_hash_ = hash_of_files(files);
  }
  test_hash_ = hash_of_test();
  for (const StudyRun& run : study_.runs) {
    const size_t bases = c.base.crossed ? starts_.size() : 1;
    for (size_t base = 0; base < bases; ++base) {
      for (int64_t i = 0; i < c.seeds; ++i) {
        add_task(run, c.base.crossed ? base : static_cast<size_t>(i) % starts_.size(), i);
      }
    }
  }
  const int64_t more = c.base.samples;
  base_evaluation_ = evaluation_of(tasks_.front().train, more > 0 ? more : c.evaluate.samples);
  add_base_rows(evaluation_of(tasks_.front().train, c.evaluate.samples));
}

void StudyPlan::add_base_rows(const EvaluationPlan& further) {
  for (size_t i = 0; i < starts_.size(); ++i) {
    base_rows_.push_back({"base", starts_[i].path, starts_[i].view, i, base_evaluation_});
  }
  for (const std::string& name : config().base.templates) {
    for (size_t i = 0; i < starts_.size(); ++i) {
      const std::string stem = stem_of(name, ".toml");
      base_rows_.push_back(
          {"base, " + stem, str(starts_[i].path, "-", stem), str(starts_[i].view, "-", stem), i, further});
      EvaluationPlan& evaluation = base_rows_.back().evaluation;
      evaluation.prompt_template = name;
      evaluation.typed.prompt_template = name;
      evaluation.name = name_of(evaluation);
    }
  }
}

void StudyPlan::add_task(const StudyRun& run, size_t at, int64_t seed) {
  const StudyStart& start = starts_[at];
  StudyTask task{run.name, "", seed, at, "", "", train_config(run, seed, start), {}, ""};
  task.train.validate();
  if (config().is("dynamics") && task.train.train.test_freq == 0) {
    throw Error(ErrorKind::config, str(run.name,
                                       ": kind dynamics shows validation over steps, but train.test_freq = 0: set "
                                       "all.train.test_freq, and base.val"));
  }
  const bool crossed = config().base.crossed;
  task.id = crossed ? str(run.name, "/", start.seed, "/", seed) : str(run.name, "/", seed);
  task.title = task.train.title();
  task.path = path_of(run, task.train, start, seed);
  task.view = path_join(views(), str(run.name, crossed ? str("-base", start.seed) : "", "-seed", seed));
  task.evaluation = evaluation_of(task.train, config().evaluate.samples);
  tasks_.push_back(std::move(task));
}

int64_t StudyPlan::threads() const {
  if (config().threads > 0) return config().threads;
  return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()));
}

// Several bases share the task of sft_seed: runs from all of them answer the same problems.
void StudyPlan::find_starts() {
  const StudyBase& base = config().base;
  task_hash_ = hash_of_base(base.sft_seed);
  const bool several = base.sft_seeds.size() > 1;
  for (int64_t seed : base.sft_seeds.empty() ? std::vector<int64_t>{base.sft_seed} : base.sft_seeds) {
    StudyStart start;
    start.seed = seed;
    start.label = several ? str("base ", seed) : "";
    start.hash = hash_of_base(seed);
    start.path = path_join(config().pool, "base-" + start.hash);
    start.model = base.embedded() || base.warm_up > 0 ? path_join(start.path, "model") : base.model;
    start.view = path_join(views(), several ? str("base-", seed) : "base");
    starts_.push_back(std::move(start));
  }
}

std::string StudyPlan::hash_of_base(int64_t seed) const {
  const StudyBase& base = config().base;
  if (!base.embedded()) {
    const std::string checkpoint = hash_of_checkpoint(base.model);
    if (base.warm_up == 0) return checkpoint.substr(0, 8);
    return hash_of_text(str(checkpoint, "\n", text_tasks_hash(base), "\nwarm_up=", base.warm_up)).substr(0, 8);
  }
  std::set<std::string> other = {"model",   "train",   "val",       "test",  "suite",  "sft_seeds",
                                 "crossed", "samples", "templates", "tasks", "warm_up"};
  if (base.hidden.markers.empty()) {
    for (const FieldValue& f : fields_of(base.hidden)) other.insert(f.key);
  }
  const auto counts = [&](const FieldValue& f) {
    return !other.contains(f.key) && !f.key.starts_with("task_options.");
  };
  std::string text = settings_that(counts, base);
  if (seed != base.sft_seed) text += str("weights_seed=", seed, "\n");
  return hash_of_text(text).substr(0, 8);
}

// Named by everything that decides the result, so that changed settings never meet old runs.
std::string StudyPlan::path_of(const StudyRun& run, const TrainConfig& train, const StudyStart& start,
                               int64_t seed) const {
  // Examples of base.tasks follow from data_hash_, in any folder.
  const bool made = !config().base.tasks.empty();
  const auto counts = [&](const FieldValue& f) {
    return tells_runs_apart(f.effect) && !(made && f.key == "data.few_shot");
  };
  const std::string text = str(settings_that(counts, train), "base=", start.hash, "\ndata=", data_hash_);
  return path_join(config().pool,
                   str(stem_of(run.config, ".toml"), "-", hash_of_text(text).substr(0, 8), "-seed", seed));
}

EmbeddedBase StudyPlan::embedded_base(const StudyStart& start) const {
  const StudyBase& b = config().base;
  EmbeddedBase base;
  base.task_directory = path_join(task_home(), "task");
  base.model_directory = start.model;
  base.weights_seed = start.seed;
  base.task = options_of(b.kind());
  base.task.hidden = b.hidden;
  base.task.seed = b.sft_seed;
  base.task.count_test = b.test_problems;
  base.worked_steps = b.sft_worked_steps;
  base.mixed_steps = b.sft_mixed_steps;
  base.device = config().device;
  base.threads = threads();
  return base;
}

TrainConfig StudyPlan::train_config(const StudyRun& run, int64_t seed, const StudyStart& start) const {
  std::vector<Setting> settings = read_config_file(run.config);
  settings.insert(settings.end(), run.settings.begin(), run.settings.end());
  auto set = [&](const char* key, const std::string& value) { settings.push_back({key, value, "study", true}); };
  auto set_list = [&](const char* key, const std::vector<std::string>& values) {
    settings.push_back({key, values, "study", false});
  };
  const StudyBase& b = config().base;
  EmbeddedBase base = embedded_base(start);
  set("model", start.model);
  set_list("data.files", b.embedded() ? std::vector{base.file("train.jsonl")} : b.train);
  set_list("data.val_files", b.embedded() ? std::vector{base.file("dev.jsonl")} : b.val);
  if (!b.tasks.empty()) set_list("reward.graders", text_task_graders(b));
  if (!b.tasks.empty() && b.warm_up == 0) {
    set("data.few_shot", text_task_shots(text_tasks_home()));
    set("data.shots", str(count_of_shots(b)));
  }
  set("seed", str(seed));
  set("device", config().device);
  set("threads", str(threads()));
  return make_train_config(settings);
}

std::string StudyPlan::hash_of_test() const {
  const StudyBase& base = config().base;
  if (base.embedded()) return task_hash_;
  if (!base.tasks.empty()) return data_hash_;
  if (base.suite.empty()) return hash_of_files(base.test);
  std::string text;
  for (const Benchmark& benchmark : load_suite(base.suite).benchmarks) {
    text += str(benchmark.name, " ", content_hash(read_benchmark(benchmark, config().data)), "\n");
  }
  return hash_of_text(text);
}

EvaluationPlan StudyPlan::evaluation_of(const TrainConfig& train, int64_t samples) const {
  const StudyConfig& c = config();
  EvalConfig asked = c.evaluate;
  asked.samples = samples;
  EvaluationPlan plan;
  if (c.base.embedded()) {
    plan = embedded_evaluation(embedded_base(starts_[0]), asked);
  } else {
    plan.config = asked;
    plan.device = c.device;
    plan.threads = threads();
    plan.files = c.base.test;
    plan.suite = c.base.suite;
    plan.data_directory = c.data;
    // As trained, whatever the suite says of other models.
    plan.prompt_template = train.data.prompt_template;
    plan.typed.prompt_template = plan.prompt_template;
    plan.typed.extract = said(train.reward.extract);
    plan.examples = train.data.examples;
    plan.grader = train.reward.grader;
    plan.graders = parse_graders(train.reward.graders, "reward.graders");
    plan.typed.max_tokens = c.evaluate.max_tokens;
    plan.max_prompt_length = 0;  // no problem is left out that the model has room for
  }
  plan.name = name_of(plan);
  return plan;
}

// What a plan has beyond a template.
std::string StudyPlan::as_graded(const EvaluationPlan& plan) const {
  std::string text;
  if (!plan.examples.few_shot.empty()) {
    const bool made = !config().base.tasks.empty();
    text += str("\n", made ? data_hash_ : hash_of_file(plan.examples.few_shot), " ", plan.examples.shots);
  }
  if (plan.grader != GraderKind::math) text += str("\n", static_cast<int>(plan.grader));
  for (const auto& [source, grader] : plan.graders) text += str("\n", source, "=", static_cast<int>(grader));
  return text;
}

// In the pool: by everything that decides the result.
std::string StudyPlan::name_of(const EvaluationPlan& plan) const {
  const std::string settings = str(to_toml(plan.config), plan.prompt_template, "\n",
                                   plan.typed.extract ? static_cast<int>(*plan.typed.extract) + 1 : 0, "\n", plan.limit,
                                   "\n", test_hash_, as_graded(plan));
  return str(config().eval_name(), "-", hash_of_text(settings).substr(0, 8));
}

namespace {

std::string state_of(const StudyTask& task) {
  if (exists(path_join(task.path, str("eval/", task.evaluation.name, ".json")))) return "done";
  if (exists(path_join(task.path, "done"))) return "trained, to be evaluated";
  return exists(path_join(task.path, "steps.jsonl")) ? "begun" : "to do";
}

}  // namespace

std::string check_study(const StudyPlan& plan) {
  const StudyConfig& c = plan.config();
  std::string text = str("study ", plan.study().name, ": ", c.title, " (", join(c.kind, ", "), ")\n");
  for (const StudyStart& start : plan.starts()) {
    const bool there = exists(path_join(start.model, "config.json"));
    text += str("base ", start.model, there ? "" : ", to be made", "\n");
  }
  std::set<std::string> seen;
  int64_t todo = 0;
  Table table{.align = "l"};
  for (const StudyTask& task : plan.tasks()) {
    const TrainConfig& t = task.train;
    const bool first = seen.insert(task.path).second;
    const std::string state = first ? state_of(task) : "the run of a row above";
    const std::string length = t.train.steps > 0 ? many(t.train.steps, "step") : many(t.train.epochs, "epoch");
    table.add({task.id, task.title, str(length, " of ", t.gen_batch(), " x ", t.rollout.n), task.path, state});
    todo += first && state != "done";
  }
  return str(text, "\n", table.text(), "\n", seen.size(), " runs, ", todo, " to do, with ",
             many(plan.threads(), "thread"), "\nresults ", path_join(c.out, "results.md"),
             "\nEvery config was read; nothing was started.\n");
}

}  // namespace ucas
