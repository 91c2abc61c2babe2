#include "report/groups.h"

#include <algorithm>
#include <set>

#include "base/str.h"

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
    if (!is_incidental(setting.first, setting.second)) kept.push_back(setting);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

bool same_group(const RunRecord& a, const RunRecord& b) {
  return a.method == b.method && a.label == b.label && a.steps.empty() == b.steps.empty() && essence(a) == essence(b);
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
      if (differing.size() == 2 || is_incidental(key, value)) continue;
      bool differs = std::ranges::any_of(others, [&](const RunRecord* run) { return run->setting(key) != value; });
      if (differs) differing.push_back(str(key.substr(key.rfind('.') + 1), " ", value));
    }
    bool shared = !others.empty();
    if (shared)
      groups[i].title = str(titles[i], " (", differing.empty() ? groups[i].runs[0]->name : join(differing, ", "), ")");
  }
}

}  // namespace

bool is_incidental(const std::string& key, const std::string& value) {
  std::string last = key.substr(key.rfind('.') + 1);
  static const std::set<std::string> names = {"seed",    "out",   "label", "resume",
                                              "threads", "model", "data",  "tokenizer"};
  return names.contains(last) || last.ends_with("_seed") || value.find('/') != std::string::npos;
}

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
  const EvalRecord* found = nullptr;
  for (const EvalRecord& evaluation : run.evaluations) {
    if (evaluation.data == data && (!found || evaluation.step >= found->step)) found = &evaluation;
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
