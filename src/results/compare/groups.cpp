#include "results/compare/groups.h"

#include <algorithm>
#include <set>

#include "base/str.h"
#include "config/train_config.h"

namespace ucas {

namespace {

std::string capitals(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c == '_' ? ' ' : c;
  return text;
}

// What a run does: all settings but the incidental ones.
std::vector<std::pair<std::string, std::string>> essence(const RunRecord& run) {
  std::vector<std::pair<std::string, std::string>> kept;
  for (const auto& setting : run.config) {
    if (!is_incidental(setting.first)) kept.push_back(setting);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// "dapo-seed1" -> "dapo", another name as it is.
std::string without_seed(const std::string& name) {
  return seed_in_name(name) < 0 ? name : name.substr(0, name.rfind("seed"));
}

// What a run began with and learnt from: by the hashes that it recorded, where one of both has none by what its
// settings say.
struct Origin {
  const char *hash, *setting;
  const char *by_hash, *by_path;  // how a title names it
};
constexpr Origin kOrigins[] = {{"initial_weights", "model", "weights ", "model "},
                               {"training_data", "data.files", "data ", "data "}};

bool same_origin(const RunRecord& a, const RunRecord& b, const Origin& origin) {
  const std::string x = a.environment(origin.hash), y = b.environment(origin.hash);
  return !x.empty() && !y.empty() ? x == y : a.setting(origin.setting) == b.setting(origin.setting);
}

// Untrained models of one label: of one directory, or written as one model of several seeds.
bool same_model(const RunRecord& a, const RunRecord& b) {
  const std::string x = a.environment("model"), y = b.environment("model");
  return x == y || (a.name != b.name && without_seed(a.name) == without_seed(b.name));
}

bool same_group(const RunRecord& a, const RunRecord& b) {
  if (a.method != b.method || a.label != b.label || a.row != b.row || a.steps.empty() != b.steps.empty()) return false;
  if (essence(a) != essence(b)) return false;
  if (!a.row.empty()) return true;
  if (a.method.empty() && a.steps.empty()) return same_model(a, b);
  return std::ranges::all_of(kOrigins, [&](const Origin& origin) { return same_origin(a, b, origin); });
}

// "weights 1a2b3c4d" or "model models/Qwen2.5-Math-7B": in what `run` began otherwise than `others`.
std::vector<std::string> other_origins(const RunRecord& run, const std::vector<const RunRecord*>& others) {
  std::vector<std::string> texts;
  for (const Origin& origin : kOrigins) {
    if (std::ranges::all_of(others, [&](const RunRecord* other) { return same_origin(run, *other, origin); })) continue;
    const bool by_path = std::ranges::any_of(
        others, [&](const RunRecord* other) { return other->setting(origin.setting) != run.setting(origin.setting); });
    texts.push_back(by_path ? str(origin.by_path, short_path(run.setting(origin.setting), 2))
                            : str(origin.by_hash, run.environment(origin.hash).substr(0, 8)));
  }
  return texts;
}

// "alpha 0.1"; of an adapter's rank "LoRA 16" or "full".
std::string setting_words(const std::string& key, const std::string& value) {
  if (key == "lora.rank") return value == "0" ? "full" : str("LoRA ", value);
  return str(key.substr(key.rfind('.') + 1), " ", value);
}

// "UCAS" and "UCAS" that differ in method.alpha become "UCAS (alpha 0.1)" and "UCAS (alpha 0.25)".
void tell_apart(std::vector<RunGroup>& groups) {
  std::vector<std::string> titles;
  for (const RunGroup& group : groups) titles.push_back(group.title);
  for (size_t i = 0; i < groups.size(); ++i) {
    std::vector<const RunRecord*> others;  // of the same name
    for (size_t j = 0; j < groups.size(); ++j) {
      if (j != i && titles[j] == titles[i]) others.push_back(groups[j].runs[0]);
    }
    std::vector<std::string> differing;
    for (const auto& [key, value] : groups[i].runs[0]->config) {
      if (differing.size() == 2 || is_incidental(key)) continue;
      bool differs = std::ranges::any_of(others, [&](const RunRecord* run) { return run->setting(key) != value; });
      // Without an adapter its other settings say nothing.
      const bool idle =
          key.starts_with("lora.") && key != "lora.rank" && groups[i].runs[0]->setting("lora.rank") == "0";
      if (differs && !idle) differing.push_back(setting_words(key, value));
    }
    for (std::string& text : other_origins(*groups[i].runs[0], others)) differing.push_back(std::move(text));
    bool shared = !others.empty();
    if (shared)
      groups[i].title = str(titles[i], " (", differing.empty() ? groups[i].runs[0]->name : join(differing, ", "), ")");
  }
}

}  // namespace

bool is_incidental(const std::string& key) { return !tells_runs_apart(effect_of(key)); }

std::string RunGroup::seeds() const {
  if (!trained && runs.size() == 1) return "";  // its seed is that of the evaluation, if any
  std::set<int64_t> distinct;
  for (const RunRecord* run : runs) {
    if (run->seed >= 0) distinct.insert(run->seed);
  }
  if (distinct.size() != runs.size()) return runs.size() == 1 ? "1 run" : str(runs.size(), " runs");
  std::vector<std::string> texts;
  for (int64_t seed : distinct) texts.push_back(str(seed));
  return str(runs.size() == 1 ? "seed " : "seeds ", join(texts, ", "));
}

std::vector<RunGroup> group_runs(std::span<const RunRecord> runs) {
  std::vector<RunGroup> groups;
  for (const RunRecord& run : runs) {
    auto home = std::find_if(groups.begin(), groups.end(),
                             [&](const RunGroup& group) { return same_group(*group.runs[0], run); });
    if (home == groups.end()) {
      RunGroup group;
      std::string title = run.environment("method");
      group.title = !run.label.empty()    ? run.label
                    : !title.empty()      ? title
                    : !run.method.empty() ? capitals(run.method)
                                          : run.name;
      group.trained = !run.method.empty() || !run.steps.empty();
      groups.push_back(std::move(group));
      home = groups.end() - 1;
    }
    home->runs.push_back(&run);
  }
  for (RunGroup& group : groups) {
    std::stable_sort(group.runs.begin(), group.runs.end(),
                     [](const RunRecord* a, const RunRecord* b) { return a->seed < b->seed; });
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const RunGroup& a, const RunGroup& b) { return a.trained < b.trained; });
  tell_apart(groups);
  size_t colors = 0;
  for (RunGroup& group : groups) group.color = &group == groups.data() && !group.trained ? 0 : 1 + colors++ % 7;
  return groups;
}

const EvalRecord* final_evaluation(const RunRecord& run, const std::string& data) {
  // An evaluation that names no step counts as one before training.
  const auto step = [](const EvalRecord& evaluation) { return std::max<int64_t>(evaluation.step, 0); };
  const EvalRecord* found = nullptr;
  for (const EvalRecord& evaluation : run.evaluations) {
    if (evaluation.data == data && (!found || step(evaluation) >= step(*found))) found = &evaluation;
  }
  return found;
}

std::vector<std::string> evaluated_data(const std::vector<RunGroup>& groups) {
  std::vector<std::string> names;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      for (const EvalRecord& evaluation : run->evaluations) {
        if (std::find(names.begin(), names.end(), evaluation.data) == names.end()) names.push_back(evaluation.data);
      }
    }
  }
  return names;
}

}  // namespace ucas
