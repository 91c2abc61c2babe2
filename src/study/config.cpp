#include "study/config.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/embedded.h"
#include "base/files/file.h"
#include "base/str.h"
#include "compare/answers.h"
#include "data/tasks/registry.h"

namespace ucas {

namespace {

// What a kind is for, what it asks for unless the file says otherwise, what it draws.
struct StudyKind {
  const char* name;
  std::vector<Setting> defaults;
  std::vector<FigureKind> figures;
};

Setting whole(const char* key, int64_t value) { return {key, value, "kind", false}; }

const std::vector<StudyKind>& study_kinds() {
  static const std::vector<int64_t> kManySamples = {1, 2, 4, 8, 16, 32, 64};
  static const std::vector<StudyKind> kinds = {
      {"methods", {}, {FigureKind::bars}},
      {"ablation", {}, {FigureKind::bars}},
      {"sensitivity", {}, {FigureKind::sensitivity}},
      {"seeds", {}, {FigureKind::bars}},
      {"dynamics", {}, {FigureKind::dynamics}},
      {"passk", {whole("evaluate.samples", 64), {"evaluate.ks", kManySamples, "kind", false}}, {FigureKind::passk}},
      {"confidence", {}, {FigureKind::confidence, FigureKind::reliability}},
      {"signals", {}, {FigureKind::bars}},
      {"case", {}, {FigureKind::cases}},
  };
  return kinds;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const StudyKind& kind : study_kinds()) names.emplace_back(kind.name);
  return names;
}

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
  f.field("test_limit", test_limit, Range{0, 1e9},
          "number of problems per file or benchmark where task = none, from the first, for a trial; 0 = all");
}

TaskKind StudyBase::kind() const {
  static constexpr TaskKind kKinds[] = {TaskKind::chains, TaskKind::chains, TaskKind::length, TaskKind::hidden_rule,
                                        TaskKind::hidden_steps};
  return kKinds[static_cast<size_t>(task)];
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
  f.field("table", table, "file to also write the table to, as markdown; empty = none");
  f.field("figures", figures, "directory to also write the figures to; empty = none");
  f.field("seeds", seeds, Range{1, 1000}, "number of seeds per run: 0, 1, ...");
  f.field("runs", runs, "table rows in order: [run.NAME] tables, or configs");
  f.field("reference", reference, "row to compare the others with; empty = the first trained row");
  f.field("columns", columns,
          "table columns: greedy, mean@N, pass@K, mixed@K, frontier@K, reached@SHARE, entropy, length, truncated, "
          "unparseable (:SOURCE, :* or :macro for sources), matched_pass@K, steps_to@SHARE, val_at@SHARE, "
          "steps_to_val@SHARE; empty = all available");
  f.field("compare", compare, "columns compared with the reference; empty = greedy and mean@N");
  f.field("metric", metric, "metric shown in maps and bars");
  f.field("problems", problems, "problem ids for kind case; empty = two problems that the rows answer differently");
  f.field("sources", sources,
          "data sources with a confidence or passk figure each; empty = all sources of the evaluation");
  f.field("jobs", jobs, Range{1, 1024}, "runs in parallel, one process each");
  f.field("device", device, "device to run on: cpu, cuda or cuda:N");
  f.field("threads", threads, Range{0, 4096}, "CPU threads per run; 0 = all cores divided among jobs");
  f.field("gates", gates,
          "conditions under which the study can say something, such as \"base.mixed@16 >= 0.5\": ROW.QUANTITY, or two "
          "with - or /, then >= or <= and a number; a failed gate of the base alone ends the study before training");
  f.section("decide", decide);
  f.section("base", base);
  f.section("evaluate", evaluate);
}

namespace {

void check_bases(const StudyConfig& c) {
  const std::vector<int64_t>& seeds = c.base.sft_seeds;
  if (!c.base.embedded()) {
    throw Error(
        ErrorKind::config,
        "base.sft_seeds makes bases of the embedded task, but base.task is none: all runs begin from base.model");
  }
  if (!c.base.crossed && static_cast<int64_t>(seeds.size()) > c.seeds) {
    throw Error(ErrorKind::config, str("base.sft_seeds has ", seeds.size(), " bases, seeds = ", c.seeds,
                                       ": some would have no run; raise seeds, name fewer, or set base.crossed"));
  }
  if (std::set<int64_t>(seeds.begin(), seeds.end()).size() < seeds.size()) {
    throw Error(ErrorKind::config, "base.sft_seeds names a seed twice: that would be one base");
  }
}

// A problem that the base was asked k times says nothing of k further samples.
void check_frontiers(const StudyConfig& c) {
  const int64_t asked = c.base.samples > 0 ? c.base.samples : c.evaluate.samples;
  for (const auto* list : {&c.columns, &c.compare}) {
    for (const std::string& column : *list) {
      const Quantity quantity = parse_quantity(column);
      if (quantity.name != "frontier" || asked > quantity.k) continue;
      throw Error(
          ErrorKind::config,
          str("column ", printable(column), ": the base has ", asked, " samples of each problem, expected more than ",
              quantity.k, ": those beyond these say what it does not solve; raise base.samples, such as to ",
              4 * quantity.k));
    }
  }
}

// What a gate speaks of must stand in the table.
void check_gates_of(const StudyConfig& c) {
  for (const std::string& text : c.gates) {
    for (const StudyGate::Term& term : parse_gate(text).terms) {
      const bool row = term.row == "base" || std::ranges::find(c.runs, term.row) != c.runs.end();
      const bool column = c.columns.empty() || std::ranges::find(c.columns, term.quantity) != c.columns.end();
      if (row && column) continue;
      throw Error(ErrorKind::config, str("gate \"", printable(text), "\": ", row ? "column " : "row ",
                                         printable(row ? term.quantity : term.row), " is not in ",
                                         row ? "columns" : "runs", "; add it, or change the gate"));
    }
  }
  const auto in_runs = [&](const std::string& row, const char* option) {
    if (std::ranges::find(c.runs, row) != c.runs.end()) return;
    throw Error(ErrorKind::config, str(option, " = \"", printable(row), "\" is not in runs"));
  };
  if (!c.decide.row.empty()) in_runs(c.decide.row, "decide.row");
  for (const std::string& row : c.decide.placebos) {
    in_runs(row, "decide.placebos");
    if (c.decide.row.empty() || row == c.decide.row || row == c.reference) {
      throw Error(ErrorKind::config, str("decide.placebos = \"", printable(row),
                                         "\": expected a row beside decide.row and the reference, and a decide.row"));
    }
  }
}

// What is trained on and asked: the embedded task, tasks made for a checkpoint, or files.
void check_sources(const StudyBase& base) {
  if (base.embedded()) {
    if (!base.suite.empty()) {
      throw Error(ErrorKind::config,
                  "base.suite and base.task exclude each other: the embedded task has its own test problems");
    }
    if (!base.tasks.empty()) {
      throw Error(ErrorKind::config, "base.tasks and base.task exclude each other: one makes tasks for a checkpoint");
    }
    if (!base.templates.empty()) {
      throw Error(ErrorKind::config,
                  "base.templates and base.task exclude each other: the embedded task has one prompt, plain");
    }
    return;
  }
  for (const std::string& name : base.tasks) text_task_called(name);
  if (base.warm_up > 0 && base.tasks.empty()) {
    throw Error(ErrorKind::config, "base.warm_up needs base.tasks, whose worked demonstrations it learns");
  }
  if (!base.tasks.empty() && (!base.suite.empty() || !base.train.empty() || !base.val.empty() || !base.test.empty())) {
    throw Error(ErrorKind::config,
                "base.tasks makes its own problems: leave out base.train, base.val, base.test and base.suite");
  }
  if (!base.suite.empty() && !base.test.empty()) {
    throw Error(ErrorKind::config, "base.suite and base.test exclude each other: give one of them");
  }
  if (base.model.empty()) {
    throw Error(ErrorKind::config,
                "base.model is empty: give --base.model DIR, a Hugging Face checkpoint (or base.task = "
                "\"register_chains\", the embedded task)");
  }
  if (base.tasks.empty() && (base.train.empty() || (base.test.empty() && base.suite.empty()))) {
    throw Error(ErrorKind::config,
                "base: give a task (base.task = \"register_chains\"), or base.model, base.train and one of "
                "base.test and base.suite");
  }
}

}  // namespace

bool StudyConfig::asks_for(const std::string& quantity) const {
  const auto named = [&](const std::string& column) { return parse_quantity(column).name == quantity; };
  return std::ranges::any_of(columns, named) || std::ranges::any_of(compare, named);
}

bool StudyConfig::is(const std::string& name) const { return std::ranges::find(kind, name) != kind.end(); }

void StudyConfig::validate() const {
  if (kind.empty()) throw Error(ErrorKind::config, str("kind is empty: one or several of ", join(kind_names(), ", ")));
  for (const std::string& name : kind) {
    std::vector<std::string> names = kind_names();
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(ErrorKind::config,
                str("kind \"", printable(name), "\": expected one of ", join(names, ", "), did_you_mean(name, names)));
  }
  if (is("confidence") && !evaluate.greedy) {
    throw Error(ErrorKind::config, "kind confidence compares greedy responses: evaluate.greedy must be true");
  }
  if (is("case") && !evaluate.greedy && evaluate.stored_responses == 0) {
    throw Error(ErrorKind::config,
                "kind case shows responses: evaluate.greedy must be true or evaluate.stored_responses > 0");
  }
  if (is("passk") && evaluate.samples < 2) {
    throw Error(ErrorKind::config,
                str("kind passk needs samples: evaluate.samples = ", evaluate.samples, ", such as 64"));
  }
  if (!base.sft_seeds.empty()) check_bases(*this);
  if (base.crossed && base.sft_seeds.empty()) {
    throw Error(ErrorKind::config,
                "base.crossed = true, but base.sft_seeds is empty: name the bases, such as [0, 1, 2, 3]");
  }
  if (base.samples > 0 && base.samples < evaluate.samples) {
    throw Error(ErrorKind::config, str("base.samples = ", base.samples, ", evaluate.samples = ", evaluate.samples,
                                       ": the base is asked as often as the runs at least; raise it, or 0"));
  }
  check_frontiers(*this);
  check_gates_of(*this);
  check_sources(base);
}

namespace {

std::vector<Setting> read_study_file(const std::string& path_or_name) {
  if (exists(path_or_name)) return read_toml(path_or_name);
  if (auto text = embedded(str("studies/", path_or_name, ".toml"))) {
    return parse_toml(std::string(*text), path_or_name + ".toml");
  }
  const std::vector<std::string> names = embedded_stems("studies/");
  throw Error(ErrorKind::path, str(printable(path_or_name), ": neither a file nor one of the embedded studies (",
                                   join(names, ", "), ")", did_you_mean(path_or_name, names)));
}

const std::string& text_of(const Setting& setting) {
  const std::string* text = std::get_if<std::string>(&setting.value);
  if (text == nullptr) throw Error(ErrorKind::config, str(setting.where, ": config: expected a text"));
  return *text;
}

// The texts of a list of anything; from the command line "0, 0.1" or "[0, 0.1]".
std::vector<std::string> items_of(const Setting& setting) {
  std::vector<std::string> items;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&setting.value)) {
    items = *texts;
  } else if (const auto* numbers = std::get_if<std::vector<int64_t>>(&setting.value)) {
    for (int64_t number : *numbers) items.push_back(str(number));
  } else if (const auto* text = std::get_if<std::string>(&setting.value)) {
    std::string_view list = trim(*text);
    if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
    for (const std::string& item : split(list, ',')) items.emplace_back(trim(item));
  }
  if (items.empty()) {
    throw Error(ErrorKind::config,
                str(setting.where, ": [grid] ", printable(setting.key), ": expected a list of values"));
  }
  return items;
}

// One value as text, whatever its type.
std::string item_of(const Setting& setting) {
  if (const auto* text = std::get_if<std::string>(&setting.value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&setting.value)) return str(*whole);
  if (const auto* real = std::get_if<double>(&setting.value)) return str(*real);
  throw Error(ErrorKind::config, str(setting.where, ": [grid.held] ", printable(setting.key), ": expected one value"));
}

// The tables of a study file, taken apart.
struct StudyFile {
  std::vector<Setting> own, all;
  std::map<std::string, StudyRun> tables;
  std::string grid_config;
  std::vector<Setting> grid;  // an axis each, value: list
  std::vector<Setting> held;  // values of the axes while another one is varied

  void add(const Setting& setting);
};

void StudyFile::add(const Setting& setting) {
  auto named = [&](size_t prefix) {
    Setting rest = setting;
    rest.key = setting.key.substr(prefix);
    return rest;
  };
  if (setting.key.starts_with("all.")) {
    all.push_back(named(4));
  } else if (setting.key == "grid.config") {
    grid_config = text_of(setting);
  } else if (setting.key.starts_with("grid.held.")) {
    Setting value = named(10);
    std::erase_if(held, [&](const Setting& s) { return s.key == value.key; });
    held.push_back(value);
  } else if (setting.key.starts_with("grid.")) {
    Setting axis = named(5);
    std::erase_if(grid, [&](const Setting& s) { return s.key == axis.key; });  // the command line replaces the file's
    grid.push_back(axis);
  } else if (setting.key.starts_with("run.")) {
    size_t dot = setting.key.find('.', 4);
    if (dot == std::string::npos) {
      throw Error(ErrorKind::config, str(setting.where, ": ", printable(setting.key), ": expected a table [run.NAME]"));
    }
    StudyRun& run = tables[setting.key.substr(4, dot - 4)];
    if (setting.key.substr(dot + 1) == "config") {
      run.config = text_of(setting);
    } else {
      run.settings.push_back(named(dot + 1));
    }
  } else {
    own.push_back(setting);
  }
}

// Values of the axes in their order; what a row of the grid has.
using GridPlace = std::vector<std::string>;

// Every combination, the last axis running fastest.
std::vector<GridPlace> all_combinations(const std::vector<Setting>& axes) {
  std::vector<GridPlace> places(1);
  for (const Setting& axis : axes) {
    std::vector<GridPlace> longer;
    for (const GridPlace& place : places) {
      for (const std::string& value : items_of(axis)) {
        longer.push_back(place);
        longer.back().push_back(value);
      }
    }
    places = std::move(longer);
    if (places.size() > 10000) throw Error(ErrorKind::limit, str("[grid]: more than 10,000 combinations"));
  }
  return places;
}

// Each axis varied while the others have their values of [grid.held], the last axis first.
std::vector<GridPlace> one_by_one(const std::vector<Setting>& axes, const std::vector<Setting>& held) {
  GridPlace middle;
  for (const Setting& axis : axes) {
    auto value = std::ranges::find(held, axis.key, &Setting::key);
    if (value == held.end()) {
      throw Error(ErrorKind::config, str(held[0].where, ": [grid.held] has no value of ", printable(axis.key),
                                         ", which is an axis of [grid]"));
    }
    middle.push_back(item_of(*value));
  }
  std::vector<GridPlace> places;
  for (size_t a = axes.size(); a-- > 0;) {
    for (const std::string& value : items_of(axes[a])) {
      GridPlace place = middle;
      place[a] = value;
      if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
    }
  }
  return places;
}

std::vector<StudyRun> grid_rows(const StudyFile& file) {
  if (file.grid.empty()) return {};
  if (file.grid_config.empty()) {
    throw Error(ErrorKind::config,
                str(file.grid[0].where, ": [grid] needs config = \"...\", the config that its rows vary"));
  }
  std::vector<StudyRun> rows;
  for (const GridPlace& place : file.held.empty() ? all_combinations(file.grid) : one_by_one(file.grid, file.held)) {
    StudyRun row;
    std::string label;
    for (size_t a = 0; a < place.size(); ++a) {
      const Setting& axis = file.grid[a];
      std::string short_key = axis.key.substr(axis.key.rfind('.') + 1);
      row.name += str(a ? "-" : "", short_key, place[a]);
      label += str(a ? ", " : "", short_key, " ", place[a]);
      row.settings.push_back({axis.key, place[a], axis.where, true});
    }
    row.config = file.grid_config;
    row.settings.push_back({"label", label, "grid", true});
    rows.push_back(std::move(row));
  }
  return rows;
}

// Names become directories.
void check_row_name(const std::string& name) {
  if (!name.empty() && name.find('/') == std::string::npos && name[0] != '.') return;
  throw Error(ErrorKind::config,
              str("runs: \"", printable(name), "\" cannot be the name of a row: no slash, no leading dot"));
}

void name_rows(Study& study, const StudyFile& file) {
  auto add = [&](StudyRun run) {
    check_row_name(run.name);
    if (std::ranges::find(study.runs, run.name, &StudyRun::name) != study.runs.end()) {
      throw Error(ErrorKind::config, str("runs: ", printable(run.name), " stands twice"));
    }
    run.settings.insert(run.settings.begin(), file.all.begin(), file.all.end());
    study.runs.push_back(std::move(run));
  };
  for (const std::string& name : study.config.runs) {
    auto table = file.tables.find(name);
    StudyRun run = table == file.tables.end() ? StudyRun{} : table->second;
    run.name = name;
    if (run.config.empty()) run.config = name;
    add(std::move(run));
  }
  for (StudyRun& row : grid_rows(file)) add(std::move(row));
  for (const auto& [name, run] : file.tables) {
    if (std::ranges::find(study.config.runs, name) == study.config.runs.end()) {
      throw Error(ErrorKind::config,
                  str("[run.", printable(name), "] is not in runs = [", join(study.config.runs, ", "), "]"));
    }
  }
  if (study.runs.empty()) {
    throw Error(ErrorKind::config,
                "runs is empty: name the configs to compare, runs = [\"dapo-tiny\", ...], or give a [grid]");
  }
}

}  // namespace

Study read_study(const std::string& path_or_name, const std::vector<Setting>& overrides) {
  Study study{stem_of(path_or_name, ".toml"), {}, {}, {}};
  StudyFile file;
  for (const Setting& setting : read_study_file(path_or_name)) file.add(setting);
  for (const Setting& setting : overrides) file.add(setting);
  StudyConfig first;
  ucas::apply(first, file.own, false);  // finds the kinds and the task
  study.config.base.hidden = options_of(first.base.kind()).hidden;
  for (const StudyKind& kind : study_kinds()) {
    if (first.is(kind.name)) ucas::apply(study.config, kind.defaults);
  }
  ucas::apply(study.config, file.own);
  study.config.validate();
  if (study.config.out.empty()) study.config.out = path_join("runs", study.name);
  if (study.config.title.empty()) study.config.title = study.name;
  for (std::vector<std::string>* files : {&study.config.base.train, &study.config.base.val, &study.config.base.test}) {
    for (std::string& file : *files) {
      if (!study.config.data.empty() && !file.starts_with('/') && !file.starts_with("hf://"))
        file = path_join(study.config.data, file);
    }
  }
  name_rows(study, file);
  for (const Setting& axis : file.grid) study.axes.push_back(axis.key);
  if (study.config.is("sensitivity") && study.axes.empty()) {
    throw Error(ErrorKind::config,
                "kind sensitivity needs a [grid]: config = \"...\" and lists of values, such as method.alpha "
                "= [0, 0.1, 0.25]");
  }
  const std::string& reference = study.config.reference;
  if (!reference.empty() && std::ranges::find(study.runs, reference, &StudyRun::name) == study.runs.end()) {
    std::vector<std::string> names;
    for (const StudyRun& run : study.runs) names.push_back(run.name);
    throw Error(ErrorKind::config,
                str("reference = \"", printable(reference), "\" is not a row; there are ", join(names, ", ")));
  }
  return study;
}

std::string StudyPlaces::runs() const { return path_join(out, "runs"); }
std::string StudyPlaces::figures() const { return path_join(out, "figures"); }
std::string StudyPlaces::results(const char* suffix) const { return path_join(out, str("results.", suffix)); }
std::string StudyPlaces::report() const { return path_join(out, "report.html"); }

StudyPlaces places_of(const StudyConfig& config) {
  return {config.out, config.pool.empty() ? path_join(config.out, "pool") : config.pool};
}

std::vector<FigureRequest> figure_requests(const Study& study, const std::vector<std::string>& runs,
                                           const std::string& data) {
  std::vector<FigureRequest> requests;
  for (const StudyKind& kind : study_kinds()) {
    if (!study.config.is(kind.name)) continue;
    for (FigureKind figure : kind.figures) {
      if (std::ranges::find(requests, figure, &FigureRequest::kind) != requests.end()) continue;
      FigureRequest request;
      request.kind = figure;
      request.runs = runs;
      request.data = data;
      request.metric = study.config.metric.substr(0, study.config.metric.find(':'));
      request.axes = study.axes;
      request.problems = study.config.problems;
      request.sources = study.config.sources;
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

}  // namespace ucas
