#include "evaluate/benchmark.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "hf/hub.h"

namespace ucas {

namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool is_path(const std::string& text) { return text.find('/') != std::string::npos || text.ends_with(".toml"); }

// Settings of a description, and the folder that its relative paths begin from ("" = embedded: none).
struct Description {
  std::vector<Setting> settings;
  std::string where, folder;
};

std::optional<Description> find_embedded(const std::string& folder, const std::string& name) {
  const auto text = embedded(str(folder, name, ".toml"));
  if (!text) return std::nullopt;
  const std::string where = str(folder, name, ".toml");
  return Description{parse_toml(std::string(*text), where), where, ""};
}

Description read_description(const std::string& path) { return {read_toml(path), path, folder_of(path)}; }

void check(const Benchmark& benchmark, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::config, str(printable(where, 400), ": ", what));
  };
  const std::string& name = benchmark.name;
  const bool plain =
      !name.empty() && name[0] != '.' && name.find_first_of("/\\ ,\"") == std::string::npos && valid_utf8(name);
  if (!plain) refuse(str("name \"", printable(name), "\": expected a word, as tables and files use it"));
  if (benchmark.path.empty()) refuse(str("benchmark ", name, ": path is missing: the problem file, below --data"));
}

// A file next to the description is preferred to one below --data.
Benchmark read_one(const Description& description, const std::vector<Setting>& changes, const std::string& name) {
  Benchmark benchmark;
  benchmark.name = name;
  ucas::apply(benchmark, description.settings);
  ucas::apply(benchmark, changes);
  if (benchmark.title.empty()) benchmark.title = benchmark.name;
  check(benchmark, description.where);
  if (!description.folder.empty()) {
    const std::string near = path_join(description.folder, benchmark.path);
    if (benchmark.path[0] != '/' && exists(near)) benchmark.path = near[0] == '/' ? near : str("./", near);
  }
  return benchmark;
}

using Tables = std::map<std::string, std::vector<Setting>>;

// Takes the [benchmark.NAME] tables out of the settings of a suite.
Tables take_tables(std::vector<Setting>& settings) {
  Tables tables;
  std::vector<Setting> rest;
  for (Setting& setting : settings) {
    if (!setting.key.starts_with("benchmark.")) {
      rest.push_back(std::move(setting));
      continue;
    }
    const size_t dot = setting.key.find('.', 10);
    if (dot == std::string::npos) {
      throw Error(ErrorKind::config,
                  str(setting.where, ": ", printable(setting.key), ": expected a table [benchmark.NAME]"));
    }
    const std::string name = setting.key.substr(10, dot - 10);
    setting.key = setting.key.substr(dot + 1);
    tables[name].push_back(std::move(setting));
  }
  settings = std::move(rest);
  return tables;
}

Benchmark find_benchmark(const std::string& entry, const Tables& tables, const Description& suite) {
  const auto table = tables.find(entry);
  const std::vector<Setting> changes = table == tables.end() ? std::vector<Setting>{} : table->second;
  if (!is_path(entry)) {
    if (const auto found = find_embedded("benchmarks/", entry)) return read_one(*found, changes, entry);
    if (table != tables.end()) return read_one({{}, suite.where, suite.folder}, changes, entry);
    std::vector<std::string> names = embedded_stems("benchmarks/");
    throw Error(ErrorKind::config, str(printable(suite.where, 400), ": benchmarks: ", printable(entry), " is unknown",
                                       did_you_mean(entry, names), "; there are ", join(names, ", "),
                                       ", [benchmark.NAME] tables, and .toml files"));
  }
  const bool absolute = entry[0] == '/' || suite.folder.empty();
  return read_one(read_description(absolute ? entry : path_join(suite.folder, entry)), changes,
                  stem_of(entry, ".toml"));
}

Suite suite_of(Description description, const std::string& name) {
  const Tables tables = take_tables(description.settings);
  Suite suite{.name = name};
  ucas::apply(suite, description.settings);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::config, str(printable(description.where, 400), ": ", what));
  };
  if (suite.named.empty()) refuse("benchmarks is empty: name what to evaluate, benchmarks = [\"aime24\", ...]");
  if (suite.name.empty() || suite.name[0] == '.' || suite.name.find('/') != std::string::npos) {
    refuse(str("name \"", printable(suite.name), "\": expected a word that can be a file name"));
  }
  if (suite.title.empty()) suite.title = suite.name;
  std::set<std::string> seen;
  for (const std::string& entry : suite.named) {
    suite.benchmarks.push_back(find_benchmark(entry, tables, description));
    if (!seen.insert(suite.benchmarks.back().name).second) {
      refuse(str("benchmarks: duplicate ", printable(suite.benchmarks.back().name)));
    }
  }
  for (const auto& [table, settings] : tables) {
    if (std::ranges::find(suite.named, table) == suite.named.end()) {
      refuse(str("[benchmark.", printable(table), "] is not in benchmarks = [", join(suite.named, ", "), "]"));
    }
  }
  return suite;
}

// A description of a single benchmark has a path, one of a suite a list of benchmarks.
Suite suite_or_benchmark(Description description, const std::string& name) {
  const bool is_suite =
      std::ranges::any_of(description.settings, [](const Setting& s) { return s.key == "benchmarks"; });
  if (is_suite) return suite_of(std::move(description), name);
  const Benchmark benchmark = read_one(description, {}, name);
  // Asked like the suites that hold it.
  return {.name = benchmark.name,
          .title = benchmark.title,
          .benchmarks = {benchmark},
          .prompt_template = "qwen_math",
          .max_tokens = 3000,
          .samples = 0};
}

void check_letters(const Benchmark& benchmark, const Problem& problem) {
  if (benchmark.grader != GraderKind::letter && benchmark.grader != GraderKind::choice) return;
  for (const std::string& gold : problem.gold) {
    const std::string_view letter = trim(gold);
    if (letter.size() == 1 && letter[0] >= 'A' && letter[0] <= 'Z') continue;
    throw Error(ErrorKind::data_line,
                str("benchmark ", benchmark.name, ": problem ", printable(problem.id), " has the answer \"",
                    printable(gold, 60), "\"; grader = \"", word_of(benchmark.grader), "\" expects a choice letter"));
  }
}

}  // namespace

void Benchmark::fields(Fields& f) {
  f.field("name", name, "name of the benchmark in tables and files");
  f.field("title", title, "title of the benchmark");
  f.field("path", path, "path of the problem file, below --data");
  f.field("problems", problems, Range{0, 1 << 30}, "expected number of problems; 0 = any");
  f.field("unanswered", unanswered, Range{-1, 1 << 30},
          "expected number of problems without a right answer, counted as wrong; -1 = any");
  f.section("columns", columns);
  f.choice("grader", grader, "grader: mathematics, letter in the response, programs, or one for comparison");
  f.choice("extract", extract, "answer extraction mode");
  f.field("template", prompt_template, "prompt template for models without one");
  f.field("stop", stop, "additional stop tokens that end a response");
  f.field("max_tokens", max_tokens, Range{0, 1 << 24}, "maximum response length in tokens; 0 = not set");
  f.field("note", note, "note for readers about the benchmark");
}

void Suite::fields(Fields& f) {
  f.field("name", name, "name of the suite in tables and files");
  f.field("title", title, "title of the suite's table");
  f.field("benchmarks", named, "benchmarks in table order: names, [benchmark.NAME] tables, or files");
  f.field("template", prompt_template, "prompt template for models and benchmarks without one");
  f.field("max_tokens", max_tokens, Range{0, 1 << 24}, "maximum response length in tokens; 0 = not set");
  f.field("samples", samples, Range{-1, 1 << 16}, "sampled responses per problem; -1 = not set");
  f.field("note", note, "note under the table");
}

Suite load_suite(const std::string& name_or_path) {
  if (is_path(name_or_path)) return suite_or_benchmark(read_description(name_or_path), stem_of(name_or_path, ".toml"));
  if (const auto found = find_embedded("suites/", name_or_path)) return suite_of(*found, name_or_path);
  if (const auto found = find_embedded("benchmarks/", name_or_path)) return suite_or_benchmark(*found, name_or_path);
  std::vector<std::string> suites = embedded_stems("suites/"), benchmarks = embedded_stems("benchmarks/");
  std::vector<std::string> all = suites;
  all.insert(all.end(), benchmarks.begin(), benchmarks.end());
  throw Error(ErrorKind::config, str("suite ", printable(name_or_path), ": unknown", did_you_mean(name_or_path, all),
                                     "; there are the suites ", join(suites, ", "), ", the benchmarks ",
                                     join(benchmarks, ", "), ", and files of your own (PATH.toml)"));
}

std::vector<std::string> benchmark_files(const Benchmark& benchmark, const std::string& directory) {
  const std::string& path = benchmark.path;
  if (path[0] == '/' || path.starts_with("./")) return {path};
  const bool of_hub = path.starts_with("hf://");
  std::vector<std::string> names = {path, file_name(path)};
  if (of_hub) names = {str("eval/", benchmark.name), benchmark.name};
  for (const std::string& below : names) {
    for (const char* ending : {of_hub ? ".jsonl" : "", ".parquet", ".csv"}) {
      const std::string found = path_join(directory, below + ending);
      if (!directory.empty() && exists(found)) return {found};
    }
  }
  if (of_hub) return data_files({path});
  if (directory.empty()) {
    throw Error(ErrorKind::usage, str("benchmark ", benchmark.name, " needs ", path,
                                      "; say with --data DIR which folder holds it (docs/formats.md)"));
  }
  throw Error(ErrorKind::path, str("benchmark ", benchmark.name, ": neither ", path, " nor ", file_name(path),
                                   " is in --data ", printable(directory, 400)));
}

std::vector<Problem> read_benchmark(const Benchmark& benchmark, const std::string& data_directory) {
  const std::vector<std::string> files = benchmark_files(benchmark, data_directory);
  const std::string& path = files.front();
  ProblemOptions options;
  options.columns = benchmark.columns;
  options.labels = benchmark.unanswered == 0;
  std::vector<Problem> problems = read_problems(files, options);
  if (benchmark.problems > 0 && static_cast<int64_t>(problems.size()) != benchmark.problems) {
    throw Error(ErrorKind::limit,
                str(printable(path, 400), ": ", grouped(static_cast<int64_t>(problems.size())),
                    " problems, but benchmark ", benchmark.name, " has ", grouped(benchmark.problems),
                    "; scores on another number would not compare. Describe your file in a .toml of its own"));
  }
  const int64_t unanswered = std::ranges::count_if(problems, [](const Problem& p) { return p.gold.empty(); });
  if (benchmark.unanswered >= 0 && unanswered != benchmark.unanswered) {
    throw Error(ErrorKind::limit,
                str(printable(path, 400), ": ", unanswered, " problems without an answer, but benchmark ",
                    benchmark.name, " has ", benchmark.unanswered));
  }
  std::set<std::string> ids;
  for (Problem& problem : problems) {
    problem.source = benchmark.name;
    if (!ids.insert(problem.id).second) {
      throw Error(ErrorKind::data_line,
                  str(printable(path, 400), ": duplicate id ", printable(problem.id), "; responses are stored by it"));
    }
    check_letters(benchmark, problem);
  }
  return problems;
}

PromptSettings prompt_settings(const CommandSettings& command, const Benchmark& benchmark, const Suite& suite) {
  PromptSettings put;
  const std::string said = command.prompt_template.value_or("");
  for (const std::string* name :
       {&said, &benchmark.prompt_template, &suite.prompt_template, &command.default_template}) {
    if (put.prompt_template.empty()) put.prompt_template = *name;
  }
  for (int64_t limit :
       {command.max_tokens.value_or(0), benchmark.max_tokens, suite.max_tokens, command.default_max_tokens}) {
    if (put.max_tokens == 0) put.max_tokens = limit;
  }
  for (const auto* stops : {&benchmark.stop, &command.stop}) {
    for (const std::string& stop : *stops) {
      if (std::ranges::find(put.stop, stop) == put.stop.end()) put.stop.push_back(stop);
    }
  }
  put.extract = command.extract ? option_of(*command.extract) : benchmark.extract;
  return put;
}

namespace {

// The last part of a path, or the last two for a checkpoint of a run: runs/dapo/checkpoints/step-0000024 is
// "dapo-step-0000024"; of a file of responses its name without its ending.
std::string label_of(const EvaluatedModel& model) {
  std::vector<std::string> parts;
  for (const std::string& part : split(model.path, '/')) {
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  if (parts.empty()) return "model";
  if (model.is_responses) return parts.back().substr(0, parts.back().rfind('.'));
  if (parts.size() >= 3 && parts[parts.size() - 2] == "checkpoints") {
    return parts[parts.size() - 3] + "-" + parts.back();
  }
  return parts.back();
}

EvaluatedModel model_of(const std::string& word, bool is_responses) {
  const size_t equals = word.find('=');
  const bool there = is_responses ? exists(word) : is_directory(word);
  const bool labelled = equals != std::string::npos && equals > 0 && word.find('/') > equals && !there;
  if (!labelled) return {"", word, is_responses};
  if (equals + 1 == word.size()) throw Error(ErrorKind::usage, str(printable(word), ": expected LABEL=DIR"));
  return {word.substr(0, equals), word.substr(equals + 1), is_responses};
}

void check_labels(const std::vector<EvaluatedModel>& models) {
  for (const EvaluatedModel& model : models) {
    const std::string& label = model.label;
    const bool once = std::ranges::count(models, label, &EvaluatedModel::label) == 1;
    if (once && !label.empty() && label.find('/') == std::string::npos && label[0] != '.') continue;
    throw Error(ErrorKind::config, str("the models' names: \"", printable(label),
                                       "\": expected different names that can be file names (LABEL=DIR)"));
  }
}

}  // namespace

std::vector<EvaluatedModel> read_models(const std::vector<std::string>& positionals,
                                        const std::vector<std::string>& responses) {
  std::vector<EvaluatedModel> models;
  for (const std::string& word : positionals) models.push_back(model_of(word, false));
  for (const std::string& word : responses) models.push_back(model_of(word, true));
  if (models.empty()) throw Error(ErrorKind::usage, "no MODEL directory given; see `ucas evaluate --help`");
  for (EvaluatedModel& model : models) {
    if (!model.label.empty()) continue;
    const std::string wanted = label_of(model);
    std::string label = wanted;
    for (int64_t n = 2; std::ranges::find(models, label, &EvaluatedModel::label) != models.end(); ++n) {
      label = str(wanted, "-", n);
    }
    model.label = label;
  }
  check_labels(models);
  return models;
}

CommandSettings command_settings(const EvaluateOptions& options, const std::vector<Setting>& typed) {
  const auto said = [&](const char* key) { return std::ranges::find(typed, key, &Setting::key) != typed.end(); };
  CommandSettings command;
  command.stop = options.stop;
  command.default_template = options.prompt_template;
  command.default_max_tokens = options.eval.max_tokens;
  if (said("template")) command.prompt_template = options.prompt_template;
  if (said("max_tokens")) command.max_tokens = options.eval.max_tokens;
  if (said("extract")) command.extract = ucas::said(options.extract);
  return command;
}

}  // namespace ucas
