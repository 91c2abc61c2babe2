// ucas advantages: a saved step's advantages under other methods or settings, without generating or training.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "cli/commands/advantages_table.h"
#include "cli/saved_steps.h"
#include "compare/advantages_compare.h"
#include "methods/apply.h"
#include "records/run/step_data.h"
#include "records/run/step_methods.h"
#include "report/methods_figure.h"

namespace ucas {

namespace {

struct AdvantagesConfig {
  std::vector<std::string> method;
  int64_t step = 0;
  int64_t show = 10;
  bool save = false;
  bool table = false;
  double rare = 0.25;
  std::string page;
  void fields(Fields& f) {
    f.field(
        "method", method,
        "methods to recompute under with default options, NAME or NAME:PRESET; empty = the run's method and settings");
    f.field("step", step, Range{0, 1e9},
            "step of the run directory to read; 0 = the last saved step, with --save all saved steps");
    f.field("show", show, Range{0, 1e6}, "number of responses and tokens to list, largest change first");
    f.field("save", save,
            "write the advantages for `ucas report` to step-N.methods.json next to the step, and print no comparison");
    f.field("table", table,
            "print one table of all methods, or of the --method list, compared with DAPO over all saved steps");
    f.field("page", page,
            "Markdown file to also write the table to as a page, with a figure and a CSV of the same name next to the "
            "page, under --table; empty = none");
    f.field("rare", rare, Range{0, 1},
            "maximum fraction of right responses in a group for a right response to be rare, under --table");
  }
};

// A method's options under the names they have in a run's config: method.alpha.
struct MethodSection {
  Method* method;
  void fields(Fields& f) { f.section("method", *method); }
};

std::set<std::string> keys_of(Method& method) {
  std::set<std::string> keys;
  for (const FieldValue& field : fields_of(MethodSection{&method})) keys.insert(field.key);
  return keys;
}

// The run's own method with its settings, as the file states them.
std::unique_ptr<Method> own_method(const StepData& data, const std::string& path) {
  const MethodRow& row = find_method(data.method);
  if (!data.preset.empty() && !row.has_preset(data.preset)) {
    throw Error(ErrorKind::config, str(printable(path, 400), ": method ", data.method, " has no preset ",
                                       printable(data.preset), "; this file is of another version of ucas"));
  }
  std::unique_ptr<Method> method = row.make(data.preset);
  std::string toml;
  for (const auto& [key, value] : data.settings) toml += str(key, " = ", value, "\n");
  ucas::apply(*method, parse_toml(toml, str(printable(path, 400), ":1: settings")));
  method->validate();
  return method;
}

// What the file would have to hold and does not.
void refuse_missing(const std::string& name, const Needs& needs, const StepData& data, const std::string& path) {
  const std::string lacks = missing(needs.all_signals(), data.batch);
  if (lacks.empty()) return;
  throw Error(ErrorKind::unsupported, str("method ", name, " needs ", lacks, ", which ", printable(path, 400),
                                          " does not hold: the run trained with ", data.method,
                                          name == data.method ? "" : ", which does without",
                                          "; take a step of a run that had it, or another method"));
}

std::vector<float> recompute(const std::string& name, const Method& method, const StepData& data,
                             const std::string& path) {
  Needs needs = method.needs();
  refuse_missing(name, needs, data, path);
  bool classify = needs.answer_classes && !data.answer_classes;
  return compute_advantages(method, classify ? with_answer_classes(data) : data.batch).advantage;
}

// The methods asked for, each with those of the settings that it knows.
std::vector<Recomputed> recomputed(const AdvantagesConfig& config, std::vector<Setting> settings, const StepData& data,
                                   const std::string& path) {
  std::string preset;
  std::erase_if(settings, [&](const Setting& s) {
    if (s.key != "method.preset") return false;
    preset = std::get<std::string>(s.value);
    return true;
  });
  bool own = config.method.empty();
  std::vector<Recomputed> all;
  std::set<std::string> used, presets;
  for (const std::string& word : own ? std::vector<std::string>{data.method} : config.method) {
    size_t colon = std::min(word.find(':'), word.size());
    std::string name = word.substr(0, colon);
    std::string wanted = colon < word.size() ? word.substr(colon + 1) : preset;
    const MethodRow& row = find_method(name);
    presets.insert(row.presets.begin(), row.presets.end());
    bool has_preset = row.has_preset(wanted);
    if (colon < word.size() && !has_preset) {
      throw Error(ErrorKind::config, str("--method ", printable(word), ": ", name,
                                         " has no such preset, expected one of ", join(row.presets, ", ")));
    }
    std::unique_ptr<Method> method =
        own && preset.empty() ? own_method(data, path) : row.make(has_preset ? wanted : "");
    std::set<std::string> keys = keys_of(*method);
    std::vector<Setting> own_settings;
    for (const Setting& s : settings) {
      if (keys.contains(s.key)) own_settings.push_back(s);
    }
    used.insert(keys.begin(), keys.end());
    MethodSection section{method.get()};
    // The last method's turn names what no method knew.
    bool last = all.size() + 1 == std::max<size_t>(1, config.method.size());
    bool all_known = std::ranges::all_of(settings, [&](const Setting& s) { return used.contains(s.key); });
    ucas::apply(section, last && !all_known ? settings : own_settings);
    method->validate();
    all.push_back({name, method->title(),
                   own && preset.empty() ? data.preset
                   : has_preset          ? wanted
                                         : row.presets.front(),
                   fields_of(section), recompute(name, *method, data, path)});
  }
  if (!preset.empty() && !presets.contains(preset)) {
    throw Error(ErrorKind::config, str("--method.preset ", printable(preset), ": expected one of ",
                                       join(std::vector<std::string>(presets.begin(), presets.end()), ", ")));
  }
  return all;
}

// Whether a function of the user's made a step's advantages, by the config of its run.
bool by_python(const std::string& path) {
  const auto run = std::filesystem::absolute(path).parent_path().parent_path();
  const std::string config = (run / "config.toml").string();
  if (!exists(config)) return false;
  return std::ranges::any_of(read_toml(config), [](const Setting& s) {
    return s.key == "method.python" && s.value != decltype(s.value)(std::string());
  });
}

// Whether the run's own settings give the stored advantages again, in words; `differs` if they should and do not.
std::string reproduction(const StepData& data, const std::string& path, std::span<const float> again, bool& differs) {
  int64_t tokens = data.batch.token_count(), equal = 0;
  double largest = 0;
  for (size_t t = 0; t < again.size(); ++t) {
    bool same = std::memcmp(&again[t], &data.advantage[t], sizeof(float)) == 0;
    equal += same;
    if (!same) largest = std::max(largest, std::fabs(static_cast<double>(again[t]) - data.advantage[t]));
  }
  if (equal == tokens) return str("all ", grouped(tokens), " stored advantages come out again, bit for bit");
  const bool python = by_python(path);
  differs = data.whole() && !python;
  return str(grouped(equal), " of ", grouped(tokens), " stored advantages come out again, largest difference ",
             fixed(largest, 6),
             python         ? "; the run's method.python made them"
             : data.whole() ? "; another build or machine wrote them?"
                            : "; only part of the step is stored, and the method looks at the whole of it");
}

std::string text_of(const std::string& path, const StepData& data, const std::string& again,
                    std::span<const Recomputed> methods, int64_t show) {
  const Batch& batch = data.batch;
  std::string text =
      str(printable(path, 400), "\n  step ", data.step, " of a run with ", data.method,
          data.preset.empty() ? "" : str(", preset ", data.preset), ": ", batch.groups.size(), " of ",
          data.groups_of_step, " prompts, ", grouped(static_cast<int64_t>(batch.responses.size())), " responses, ",
          grouped(batch.token_count()), " tokens\n  the run's own settings: ", again, "\n");
  if (!data.whole()) {
    text += "  methods that look at the whole step see the stored prompts only\n";
  }
  for (const Recomputed& method : methods) text += "\n" + comparison_text(data, method, show);
  return text;
}

void save_methods(const std::string& path, const StepData& data, std::span<const Recomputed> methods) {
  std::vector<MethodAdvantages> saved;
  for (const Recomputed& method : methods) {
    saved.push_back({method.name, method.preset, method.title, {}, method.advantage});
    for (const FieldValue& field : method.settings) {
      saved.back().settings.emplace_back(field.key.substr(7), field.value);
    }
  }
  std::string file = step_methods_file(path);
  write_file(file, step_methods_json(data, hash_of_file(path), saved));
  out(str(printable(file, 400), ": ", methods.size(), methods.size() == 1 ? " method, " : " methods, ",
          grouped(data.batch.token_count()), " tokens\n"));
}

// The page, and next to it the figure as SVG and its numbers as CSV.
void write_page(const MethodsTable& table, const std::string& file, const Words& words) {
  if (!file.ends_with(".md")) {
    throw Error(ErrorKind::usage,
                str("--page ", printable(file), ": expected the name of a Markdown file, one that ends in .md"));
  }
  const std::string stem = file.substr(0, file.size() - 3), name = stem.substr(stem.find_last_of('/') + 1);
  std::string command = "ucas advantages";
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--page") {
      ++i;
    } else if (!words[i].starts_with("--page=")) {
      command += " " + words[i];
    }
  }
  const StudyFigure figure = methods_figure(table);
  write_output(file, methods_page(table, name, command));
  write_output(stem + ".svg", figure.svg);
  write_output(stem + ".csv", figure.csv);
}

void show_table(const AdvantagesConfig& config, const std::string& path, const Words& words) {
  const MethodsTable table =
      methods_table(saved_step_files(path, config.step, SavedSteps::all), config.rare, config.method);
  if (!config.page.empty()) write_page(table, config.page, words);
  out(methods_table_text(table, printable(path, 400)));
}

}  // namespace

std::string options_advantages() { return options_help(AdvantagesConfig{}); }

int run_advantages(const Words& words) {
  CommandLine line = parse_command_line(words, {"save", "table"});
  std::vector<Setting> general, of_method;
  for (const Setting& s : line.settings) (s.key.starts_with("method.") ? of_method : general).push_back(s);
  for (Setting& s : general) {
    if (s.key == "method" && s.from_text && std::get<std::string>(s.value).empty()) {
      throw Error(ErrorKind::usage, "--method: a name is missing after it");
    }
  }
  AdvantagesConfig config;
  ucas::apply(config, general);
  if (line.positionals.size() != 1) {
    throw Error(ErrorKind::usage, str("advantages: expected one STEP.jsonl or run directory, got ",
                                      line.positionals.size(), "; see ucas advantages --help"));
  }
  if (config.table) {
    if (config.save) throw Error(ErrorKind::usage, "--table and --save: give one of them");
    if (!of_method.empty()) {
      throw Error(ErrorKind::usage,
                  str("--", of_method.front().key,
                      ": --table compares methods with their defaults; expected --method NAME:PRESET alone"));
    }
    if (config.save) throw Error(ErrorKind::usage, "--table and --save: give one of them");
    show_table(config, line.positionals[0], words);
    return kDone;
  }
  if (!config.page.empty()) throw Error(ErrorKind::usage, "--page is of --table: give both");
  bool any_differs = false;
  for (const std::string& path :
       saved_step_files(line.positionals[0], config.step, config.save ? SavedSteps::all : SavedSteps::last)) {
    StepData data = read_step_data(path);
    std::unique_ptr<Method> own = own_method(data, path);
    bool differs = false;
    std::string again = reproduction(data, path, recompute(data.method, *own, data, path), differs);
    std::vector<Recomputed> methods = recomputed(config, of_method, data, path);
    any_differs |= differs;
    if (config.save) {
      save_methods(path, data, methods);
    } else {
      out(text_of(path, data, again, methods, config.show));
    }
  }
  return any_differs ? kDiffers : kDone;
}

}  // namespace ucas
