#include "study/config.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "data/tasks/task.h"

namespace ucas {

namespace {

// The figures of the runs.
struct StudyKind {
  const char* name;
  FigureKind figure;
};
constexpr StudyKind kKinds[] = {
    {"methods", FigureKind::bars}, {"ablation", FigureKind::bars},         {"sensitivity", FigureKind::bars},
    {"seeds", FigureKind::bars},   {"signals", FigureKind::bars},          {"dynamics", FigureKind::dynamics},
    {"passk", FigureKind::passk},  {"confidence", FigureKind::confidence}, {"case", FigureKind::cases},
};

}  // namespace

void StudyBase::fields(Fields& f) {
  f.choice("task", task, {"none", "register_chains", "length_generalisation", "hidden_rule", "hidden_steps"},
           "embedded task that all runs start from, or none");
  f.field("sft_seed", sft_seed, Range{0, 9e15},
          "random seed of the embedded task, the initial weights and the warm-up");
  f.field(
      "sft_seeds", sft_seeds, Range{0, 9e15},
      "random seeds of several bases (initial weights and warm-up) on the task of sft_seed; empty = one base for all");
  f.field("crossed", crossed,
          "combine every seed of sft_seeds with every run seed; false = one base per run seed, in turn");
  f.field("sft_worked_steps", sft_worked_steps, Range{0, 1e6}, "warm-up updates on worked demonstrations");
  f.field("sft_mixed_steps", sft_mixed_steps, Range{1, 1e6},
          "warm-up updates on mostly direct demonstrations, after the worked ones");
  f.field("test_problems", test_problems, Range{1, 1e5}, "held-out problems of the embedded task");
  hidden.fields(f);
  f.field("samples", samples, Range{0, 1e6},
          "samples per problem from the untrained base for frontier@K; 0 = evaluate.samples");
  f.field("model", model, OptionNames::checkpoint,
          "Hugging Face checkpoint that all runs start from, where task = none");
  f.field("train", train, OptionNames::training_data, "training problems where task = none, JSONL");
  f.field("val", val, OptionNames::evaluation_data, "validation problems where task = none, JSONL");
  f.field("test", test, OptionNames::evaluation_data, "problems of the final evaluation where task = none, JSONL");
  f.field("tasks", tasks,
          "tasks for pretrained models to make problems of instead of base.train, base.val and base.test where task = "
          "none, such as word-problems,countdown");
  f.section("task_options", task_options);
  f.field(
      "warm_up", warm_up, Range{0, 1e6},
      "supervised updates on 500 worked demonstrations of base.tasks that make one base for all rows; 0 = none, and "
      "four worked examples before every question");
  f.field("suite", suite, "suite of benchmarks instead of base.test where task = none, such as math5");
  f.field("templates", templates,
          "further prompt templates to evaluate the untrained base with where task = none, a row each, such as plain");
}

TaskKind StudyBase::kind() const {
  static constexpr TaskKind kKinds[] = {TaskKind::chains, TaskKind::chains, TaskKind::length, TaskKind::hidden_rule,
                                        TaskKind::hidden_steps};
  return kKinds[static_cast<size_t>(task)];
}

void StudyColumn::fields(Fields& f) {
  f.field("metric", metric, "metrics, as in columns; with an accuracy also reached, steps_to, val_at, steps_to_val");
  f.field("source", source, "sources of problems, each, or macro = mean over the sources; empty = all problems");
  f.field("accuracy", accuracy, Range{0, 1},
          "accuracy that steps_to and val_at reach in training, steps_to_val in validation, reached at the end");
}

std::vector<Quantity> StudyColumn::quantities() const {
  std::vector<Quantity> out;
  for (const std::string& name : metric) {
    Quantity one = parse_quantity(name);
    if (one.takes_accuracy() != (accuracy > 0) || (one.of_training() && !source.empty())) {
      throw Error(ErrorKind::config,
                  str("column ", printable(name),
                      ": expected an accuracy above 0 of steps_to, val_at, steps_to_val and "
                      "reached alone, and no source of the first three: [column.NAME] metric, source, accuracy"));
    }
    if (accuracy > 0) one.at = str(accuracy);
    for (const std::string& scope : source.empty() ? std::vector<std::string>{""} : source) {
      out.push_back(one);
      out.back().scope = scope;
    }
  }
  return out;
}

void StudyConfig::fields(Fields& f) {
  f.field("title", title, "title of table and report");
  f.field("kind", kind,
          "kind of results, one or several of methods, ablation, sensitivity, seeds, dynamics, passk, confidence, "
          "signals, case");
  f.field("out", out, "directory for the results; empty = runs/NAME");
  f.field("pool", pool,
          "directory of the run directories; studies with the same pool share finished runs of equal settings and "
          "base; empty = OUT/pool");
  f.field("data", data, "directory for relative paths of base.train, base.val, base.test and the suite's files");
  f.field("seeds", seeds, Range{1, 1000}, "number of seeds per run");
  f.field("runs", runs, "table rows in order: [run.NAME] tables, or configs");
  f.field("reference", reference, "row to compare the others with; empty = the first trained row");
  f.field("columns", columns,
          "table columns: [column.NAME] tables, or metrics: greedy, mean@N, pass@K, mixed@K, frontier@K, entropy, "
          "length, truncated, unparseable; empty = greedy, mean@N, entropy and length");
  f.field("compare", compare, "columns compared with the reference; empty = greedy and mean@N");
  f.field("metric", metric, "metric shown in bars");
  f.field("problems", problems, "problem ids for kind case; empty = two problems that the rows answer differently");
  f.field("sources", sources,
          "data sources with a confidence or passk figure each; empty = all sources of the evaluation");
  f.field("device", device, "device to run on: cpu, cuda or cuda:N");
  f.field("threads", threads, Range{0, 4096}, "CPU threads per run; 0 = all cores");
  f.section("decide", decide);
  f.section("base", base);
  f.section("evaluate", evaluate);
}

namespace {

// What is trained on and asked: the embedded task, tasks made for a checkpoint, or files.
void check_sources(const StudyBase& base) {
  const bool files = !base.train.empty() || !base.val.empty() || !base.test.empty();
  const char* wrong = nullptr;
  if (base.embedded()) {
    if (!base.suite.empty() || !base.tasks.empty() || !base.templates.empty()) {
      wrong = "base.task has its own problems and prompt: leave out base.suite, base.tasks and base.templates";
    }
  } else if (base.model.empty()) {
    wrong =
        "base.model is empty: give --base.model DIR, a Hugging Face checkpoint (or base.task = \"register_chains\", "
        "the embedded task)";
  } else if (base.warm_up > 0 && base.tasks.empty()) {
    wrong = "base.warm_up needs base.tasks, whose worked demonstrations it learns";
  } else if (!base.tasks.empty() && (files || !base.suite.empty())) {
    wrong = "base.tasks makes its own problems: leave out base.train, base.val, base.test and base.suite";
  } else if (base.tasks.empty() && (base.train.empty() || base.test.empty() == base.suite.empty())) {
    wrong = "base: give base.train, and one of base.test and base.suite; or base.tasks";
  }
  if (wrong) throw Error(ErrorKind::config, wrong);
  for (const std::string& name : base.tasks) text_task_called(name);
}

}  // namespace

bool StudyConfig::is(const std::string& name) const { return std::ranges::find(kind, name) != kind.end(); }

void StudyConfig::validate(bool trains) const {
  std::vector<std::string> names;
  for (const StudyKind& known : kKinds) names.emplace_back(known.name);
  for (const std::string& name : kind) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(ErrorKind::config,
                str("kind \"", printable(name), "\": expected one of ", join(names, ", "), did_you_mean(name, names)));
  }
  const std::vector<int64_t>& bases = base.sft_seeds;
  const std::pair<bool, std::string> rules[] = {
      {(is("confidence") || is("case")) && !evaluate.greedy,
       "kinds confidence and case show greedy responses: evaluate.greedy must be true"},
      {is("passk") && evaluate.samples < 2,
       str("kind passk needs samples: evaluate.samples = ", evaluate.samples, ", such as 64")},
      {!bases.empty() && !base.embedded(),
       "base.sft_seeds makes bases of the embedded task, but base.task is none: all runs begin from base.model"},
      {!base.crossed && std::ssize(bases) > seeds,
       str("base.sft_seeds has ", bases.size(), " bases, seeds = ", seeds,
           ": some would have no run; raise seeds, name fewer, or set base.crossed")},
      {std::set<int64_t>(bases.begin(), bases.end()).size() < bases.size(),
       "base.sft_seeds names a seed twice: that would be one base"},
      {base.crossed && bases.empty(),
       "base.crossed = true, but base.sft_seeds is empty: name the bases, such as [0, 1, 2, 3]"},
      {base.samples > 0 && base.samples < evaluate.samples,
       str("base.samples = ", base.samples, ", evaluate.samples = ", evaluate.samples,
           ": the base is asked as often as the runs at least; raise it, or 0")},
      {!std::ranges::is_sorted(decide.looks), "decide.looks: expected ascending numbers"}};
  for (const auto& [broken, why] : rules) {
    if (broken) throw Error(ErrorKind::config, why);
  }
  if (trains) check_sources(base);
}

namespace {

std::vector<Setting> read_one_file(const std::string& path_or_name) {
  if (exists(path_or_name)) return read_toml(path_or_name);
  if (auto text = embedded(str("studies/", path_or_name, ".toml"))) {
    return parse_toml(std::string(*text), path_or_name + ".toml");
  }
  const std::vector<std::string> names = embedded_stems("studies/");
  throw Error(ErrorKind::path, str(printable(path_or_name), ": neither a file nor one of the embedded studies (",
                                   join(names, ", "), ")", did_you_mean(path_or_name, names)));
}

// The tables of a study file, taken apart.
struct StudyFile {
  std::vector<Setting> own, all;
  std::map<std::string, StudyRun> runs;
  std::map<std::string, std::vector<Setting>> columns, gates;
  std::set<std::string> inherited;  // of runs: a study need not have all rows of what it extends

  void read(const std::string& path_or_name, int depth = 0);
  void add(const Setting& setting);
};

// What it extends first, so that its own settings have the last word.
void StudyFile::read(const std::string& path_or_name, int depth) {
  const std::vector<Setting> settings = read_one_file(path_or_name);
  const auto extends = std::ranges::find(settings, "extends", &Setting::key);
  if (extends != settings.end() && depth > 8) {
    throw Error(ErrorKind::config, str(extends->where, ": extends: more than 8 files deep"));
  }
  if (extends != settings.end()) read(text_of(*extends), depth + 1);
  for (const auto& [name, run] : runs) inherited.insert(name);
  for (const Setting& setting : settings) {
    if (setting.key != "extends") add(setting);
  }
}

void StudyFile::add(const Setting& setting) {
  const size_t dot = setting.key.find('.');
  const std::string table = dot == std::string::npos ? "" : setting.key.substr(0, dot);
  Setting rest = setting;
  rest.key = setting.key.substr(dot + 1);
  if (table == "all") {
    all.push_back(rest);
  } else if (table == "run" || table == "column" || table == "gate") {
    const size_t second = rest.key.find('.');
    if (second == std::string::npos) {
      throw Error(ErrorKind::config,
                  str(setting.where, ": ", printable(setting.key), ": expected a table [", table, ".NAME]"));
    }
    const std::string name = rest.key.substr(0, second);
    rest.key = rest.key.substr(second + 1);
    if (table == "run" && rest.key == "config") {
      runs[name].config = text_of(setting);
    } else {
      (table == "run" ? runs[name].settings : table == "column" ? columns[name] : gates[name]).push_back(rest);
    }
  } else {
    own.push_back(setting);
  }
}

// Names become directories.
void check_row_name(const std::string& name) {
  if (!name.empty() && name.find('/') == std::string::npos && name[0] != '.') return;
  throw Error(ErrorKind::config,
              str("runs: \"", printable(name), "\" cannot be the name of a row: no slash, no leading dot"));
}

void name_rows(Study& study, const StudyFile& file) {
  for (const std::string& name : study.config.runs) {
    auto table = file.runs.find(name);
    StudyRun run = table == file.runs.end() ? StudyRun{} : table->second;
    run.name = name;
    if (run.config.empty()) run.config = name;
    check_row_name(name);
    if (std::ranges::find(study.runs, name, &StudyRun::name) != study.runs.end()) {
      throw Error(ErrorKind::config, str("runs: duplicate ", printable(name)));
    }
    run.settings.insert(run.settings.begin(), file.all.begin(), file.all.end());
    study.runs.push_back(std::move(run));
  }
  for (const auto& [name, run] : file.runs) {
    if (std::ranges::find(study.config.runs, name) == study.config.runs.end() && !file.inherited.contains(name)) {
      throw Error(ErrorKind::config,
                  str("[run.", printable(name), "] is not in runs = [", join(study.config.runs, ", "), "]"));
    }
  }
  if (study.runs.empty()) {
    throw Error(ErrorKind::config, "runs is empty: name the configs to compare, runs = [\"dapo-tiny\", ...]");
  }
}

// The columns that are called `names`.
std::vector<Quantity> columns_called(const std::vector<std::string>& names, const StudyFile& file) {
  std::vector<Quantity> out;
  for (const std::string& name : names) {
    StudyColumn column;
    if (const auto table = file.columns.find(name); table != file.columns.end()) apply(column, table->second);
    if (column.metric.empty()) column.metric = {name};
    for (Quantity& quantity : column.quantities()) out.push_back(std::move(quantity));
  }
  return out;
}

StudyGate gate_of(const std::string& name, const std::vector<Setting>& settings, const Study& study,
                  const StudyFile& file) {
  StudyGate gate;
  apply(gate, settings);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::config, str("[gate.", printable(name), "]: ", what));
  };
  for (const std::string& row : {gate.row, gate.than_row.empty() ? gate.row : gate.than_row}) {
    const bool known = row == "base" || std::ranges::find(study.runs, row, &StudyRun::name) != study.runs.end();
    if (!known) refuse(str("\"", printable(row), "\" is neither base nor a row"));
  }
  if (std::isnan(gate.at_least) && std::isnan(gate.at_most)) refuse("expected at_least or at_most, a number");
  const auto quantity = [&](const std::string& column) {
    const std::vector<Quantity> called = columns_called({column}, file);
    const bool shown = called.size() == 1 && std::ranges::find(study.columns, called[0]) != study.columns.end();
    if (!shown) refuse(str("\"", printable(column), "\" is not one column among columns"));
    return called[0];
  };
  gate.quantity = gate.than_quantity = quantity(gate.column);
  if (!gate.than_column.empty()) gate.than_quantity = quantity(gate.than_column);
  return gate;
}

// Rows that the study speaks of are its rows.
void check_rows(const Study& study) {
  const StudyConfig& c = study.config;
  std::vector<std::string> names;
  for (const StudyRun& run : study.runs) names.push_back(run.name);
  const auto check = [&](const char* option, const std::string& row) {
    if (row.empty() || std::ranges::find(names, row) != names.end()) return;
    throw Error(ErrorKind::config,
                str(option, " = \"", printable(row), "\" is not a row; there are ", join(names, ", ")));
  };
  check("reference", c.reference);
  check("decide.row", c.decide.row);
  for (const std::string& row : c.decide.placebos) {
    check("decide.placebos", row);
    if (!c.decide.row.empty() && row != c.decide.row && row != c.reference) continue;
    throw Error(ErrorKind::config, str("decide.placebos = \"", printable(row),
                                       "\": expected a row besides decide.row and the reference, and a decide.row"));
  }
}

}  // namespace

Study read_study(const std::string& path_or_name, const std::vector<Setting>& overrides, bool trains) {
  Study study{stem_of(path_or_name, ".toml"), {}, {}, {}, {}, {}};
  StudyConfig& config = study.config;
  StudyFile file;
  file.read(path_or_name);
  for (const Setting& setting : overrides) file.add(setting);
  StudyConfig first;
  ucas::apply(first, file.own, false);  // finds the task
  config.base.hidden = options_of(first.base.kind()).hidden;
  ucas::apply(config, file.own);
  config.validate(trains);
  if (config.out.empty()) config.out = path_join("runs", study.name);
  if (config.pool.empty()) config.pool = path_join(config.out, "pool");
  if (config.title.empty()) config.title = study.name;
  for (std::vector<std::string>* files : {&config.base.train, &config.base.val, &config.base.test}) {
    for (std::string& one : *files) {
      if (!config.data.empty() && !one.starts_with('/') && !one.starts_with("hf://")) one = path_join(config.data, one);
    }
  }
  name_rows(study, file);
  check_rows(study);
  study.columns = columns_called(config.columns, file);
  study.compare = columns_called(config.compare, file);
  for (const auto& [name, settings] : file.gates) study.gates.push_back(gate_of(name, settings, study, file));
  return study;
}

std::vector<FigureRequest> figure_requests(const Study& study, const std::vector<std::string>& runs,
                                           const std::string& data) {
  std::vector<FigureRequest> requests;
  for (const StudyKind& kind : kKinds) {
    const bool listed = std::ranges::find(requests, kind.figure, &FigureRequest::kind) != requests.end();
    if (!study.config.is(kind.name) || listed) continue;
    FigureRequest request;
    request.kind = kind.figure;
    request.runs = runs;
    request.data = data;
    request.metric = study.config.metric;
    request.problems = study.config.problems;
    request.sources = study.config.sources;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace ucas
