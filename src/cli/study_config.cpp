#include "cli/study_config.h"

#include <algorithm>
#include <map>

#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

namespace ucas {

void StudyBase::fields(Fields& f) {
  f.choice("task", task, {"none", "register_chains", "length_generalisation"},
           "the embedded task all runs begin from, or none");
  f.field("sft_seed", sft_seed, Range{0, 9e15}, "of the embedded task, its initial weights and its warm-up");
  f.field("sft_worked_steps", sft_worked_steps, Range{0, 1e6}, "warm-up updates on worked demonstrations");
  f.field("sft_mixed_steps", sft_mixed_steps, Range{1, 1e6}, "then on mostly direct ones");
  f.field("test_problems", test_problems, Range{1, 1e5}, "held-out problems of the embedded task");
  f.field("model", model, "task = none: the Hugging Face checkpoint all runs begin from");
  f.field("train", train, "task = none: training problems, JSONL");
  f.field("val", val, "task = none: validation problems, JSONL");
  f.field("test", test, "task = none: problems of the final evaluation, JSONL");
}

void StudyConfig::fields(Fields& f) {
  f.field("title", title, "title of table and report");
  f.field("out", out, "where everything goes; finished runs found there are reused; empty = runs/NAME");
  f.field("table", table, "file that also receives the table, as markdown");
  f.field("seeds", seeds, Range{1, 1000}, "seeds 0, 1 ... of every run");
  f.field("runs", runs, "rows of the table: [run.NAME] tables, or configs, in this order");
  f.field("device", device, "cpu, cuda or cuda:N");
  f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
  f.section("base", base);
  f.section("evaluate", evaluate);
}

void StudyConfig::validate() const {
  if (runs.empty()) throw Error("config", "runs is empty: name the configs to compare, runs = [\"dapo-tiny\", ...]");
  if (base.task != StudyBase::Task::none) return;
  if (base.model.empty() || base.train.empty() || base.test.empty()) {
    throw Error("config",
                "base: give a task (base.task = \"register_chains\"), or base.model, base.train and base.test");
  }
}

namespace {

std::vector<Setting> read_study_file(const std::string& path_or_name) {
  if (exists(path_or_name)) return read_toml(path_or_name);
  if (auto text = embedded(str("studies/", path_or_name, ".toml"))) {
    return parse_toml(std::string(*text), path_or_name + ".toml");
  }
  std::vector<std::string> names;
  for (const std::string& file : embedded_names("studies/")) names.push_back(file.substr(8, file.size() - 13));
  std::string near = nearest(path_or_name, names);
  throw Error("path", str(printable(path_or_name), ": neither a file nor one of the embedded studies (",
                          join(names, ", "), ")", near.empty() ? "" : str("; did you mean ", near, "?")));
}

std::string stem(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  return name.ends_with(".toml") ? name.substr(0, name.size() - 5) : name;
}

}  // namespace

Study read_study(const std::string& path_or_name, const std::vector<Setting>& overrides) {
  Study study{stem(path_or_name), {}, {}};
  std::vector<Setting> own, all;
  std::map<std::string, StudyRun> tables;
  auto sort_in = [&](const Setting& setting) {
    if (setting.key.starts_with("all.")) {
      all.push_back(setting);
      all.back().key = setting.key.substr(4);
    } else if (setting.key.starts_with("run.")) {
      size_t dot = setting.key.find('.', 4);
      if (dot == std::string::npos) {
        throw Error("config", str(setting.where, ": ", printable(setting.key), ": expected a table [run.NAME]"));
      }
      StudyRun& run = tables[setting.key.substr(4, dot - 4)];
      std::string key = setting.key.substr(dot + 1);
      if (key == "config") {
        const std::string* config = std::get_if<std::string>(&setting.value);
        if (config == nullptr) throw Error("config", str(setting.where, ": config: expected a text"));
        run.config = *config;
      } else {
        run.settings.push_back(setting);
        run.settings.back().key = key;
      }
    } else {
      own.push_back(setting);
    }
  };
  for (const Setting& setting : read_study_file(path_or_name)) sort_in(setting);
  for (const Setting& setting : overrides) sort_in(setting);
  ucas::apply(study.config, own);
  study.config.validate();
  if (study.config.out.empty()) study.config.out = path_join("runs", study.name);
  if (study.config.title.empty()) study.config.title = study.name;
  for (const std::string& name : study.config.runs) {
    if (std::ranges::find(study.runs, name, &StudyRun::name) != study.runs.end()) {
      throw Error("config", str("runs: ", printable(name), " stands twice"));
    }
    auto table = tables.find(name);
    StudyRun run = table == tables.end() ? StudyRun{} : table->second;
    run.name = name;
    if (run.config.empty()) run.config = name;
    run.settings.insert(run.settings.begin(), all.begin(), all.end());
    study.runs.push_back(std::move(run));
  }
  for (const auto& [name, run] : tables) {
    if (std::ranges::find(study.config.runs, name) == study.config.runs.end()) {
      throw Error("config", str("[run.", printable(name), "] is not in runs = [", join(study.config.runs, ", "), "]"));
    }
  }
  return study;
}

}  // namespace ucas
