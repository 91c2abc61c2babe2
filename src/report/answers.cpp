#include "report/answers.h"

#include <cmath>

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

RunAnswers answers_of(const RunRecord& run, const EvalRecord& evaluation) {
  RunAnswers out;
  out.name = run.path;
  out.label = run.luck();
  for (const ProblemRow& row : evaluation.rows) {
    ProblemAnswers& p = out.problems.emplace_back();
    p.source = row.source;
    p.id = row.id;
    p.content = content_of(row.problem, row.gold);
    if (row.has_greedy) p.greedy = row.greedy.verdict == "equal";
    p.samples = row.samples;
    p.correct = row.correct;
    p.first = row.first;
    p.correct_of_first = row.correct_of_first;
  }
  add_figures(out, evaluation, "");
  for (const auto& [source, numbers] : evaluation.by_source) add_figures(out, numbers, ":" + source);
  if (evaluation.macro) add_figures(out, *evaluation.macro, ":macro");
  return out;
}

AnswerGroup answers_of(const RunGroup& group, const std::function<const EvalRecord*(const RunRecord&)>& choose) {
  AnswerGroup out{group.title, group.trained, {}};
  for (const RunRecord* run : group.runs) {
    if (const EvalRecord* evaluation = choose(*run)) out.runs.push_back(answers_of(*run, *evaluation));
  }
  return out;
}

}  // namespace ucas
