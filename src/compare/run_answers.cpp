#include "compare/run_answers.h"

#include <cmath>
#include <set>

#include "base/str.h"

namespace ucas {

namespace {

void add_figures(RunAnswers& run, const EvalNumbers& numbers, const std::string& scope) {
  const auto add = [&](const std::string& name, double value) {
    if (!std::isnan(value)) run.figures[name + scope] = value;
  };
  for (const char* name : {"greedy", "entropy", "length", "truncated", "unparseable"}) {
    add(name, figure_named(numbers, name).value);
  }
  for (const FigureAt& figure : numbers.mean_at) add(str("mean@", figure.k), figure.share.value);
  for (const FigureAt& figure : numbers.pass_at) add(str("pass@", figure.k), figure.share.value);
}

}  // namespace

RunAnswers answers_of(const EvalRecord& evaluation) {
  RunAnswers out;
  out.name = evaluation.label;
  out.label.seed = evaluation.config.seed;
  for (const ProblemRow& row : evaluation.rows) {
    ProblemAnswers& p = out.problems.emplace_back();
    p.source = row.source;
    p.id = row.id;
    p.content = content_of(row.problem, row.gold);
    if (row.greedy) p.greedy = row.greedy->right();
    p.samples = row.samples;
    p.correct = row.correct;
  }
  add_figures(out, evaluation, "");
  for (const auto& [source, numbers] : evaluation.by_source) add_figures(out, numbers, ":" + source);
  if (evaluation.macro) add_figures(out, *evaluation.macro, ":macro");
  return out;
}

RunAnswers answers_of(const RunRecord& run, const EvalRecord& evaluation) {
  RunAnswers out = answers_of(evaluation);
  out.name = run.path;
  out.label = run.luck();
  return out;
}

AnswerGroup answers_of(const RunGroup& group, const std::function<const EvalRecord*(const RunRecord&)>& choose) {
  AnswerGroup out{group.title, group.trained, {}};
  for (const RunRecord* run : group.runs) {
    if (const EvalRecord* evaluation = choose(*run)) out.runs.push_back(answers_of(*run, *evaluation));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> settings_of(const EvalRecord& evaluation) {
  std::vector<std::pair<std::string, std::string>> out;
  const EvalConfig& c = evaluation.config;
  const std::vector<AskedSet> sets = evaluation.asked ? evaluation.asked->sets : std::vector<AskedSet>{};
  // One line where all benchmarks agree, else one a benchmark.
  const auto by_benchmark = [&](const std::string& key, auto text_of) {
    std::set<std::string> all;
    for (const AskedSet& set : sets) all.insert(text_of(set));
    if (all.size() == 1) out.emplace_back(key, *all.begin());
    for (const AskedSet& set : sets) {
      if (all.size() > 1) out.emplace_back(str(key, " of ", set.name), text_of(set));
    }
  };
  by_benchmark("template", [](const AskedSet& set) { return name_and_hash(set.prompt_template, set.template_sha256); });
  by_benchmark("max_tokens", [](const AskedSet& set) { return str(set.max_tokens); });
  by_benchmark("stop tokens", [](const AskedSet& set) { return join(set.stop_texts, " "); });
  by_benchmark("grader", [](const AskedSet& set) { return str(word_of(set.grader), " ", word_of(set.extract)); });
  for (const AskedSet& set : sets) {
    out.emplace_back(str("problems of ", set.name), name_and_hash(str(set.problems), set.problems_sha256));
  }
  if (evaluation.asked) {
    out.emplace_back("grader version", str(evaluation.asked->grader_version));
    out.emplace_back("truncated responses", c.truncated == Truncated::grade ? "graded" : "wrong");
    out.emplace_back("dtype", word_of(c.dtype));
  }
  out.emplace_back("samples", str(c.samples));
  if (c.samples > 0) {
    out.emplace_back("temperature", str(c.temperature));
    out.emplace_back("top_p", str(c.top_p));
    out.emplace_back("top_k", str(c.top_k));
    if (c.min_p > 0) out.emplace_back("min_p", str(c.min_p));
    out.emplace_back("seed", str(c.seed));
    if (evaluation.asked) out.emplace_back("seed keys", evaluation.asked->keys);
  }
  return out;
}

}  // namespace ucas
