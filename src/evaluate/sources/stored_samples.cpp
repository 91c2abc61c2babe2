#include "evaluate/sources/stored_samples.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "records/outputs.h"
#include "verify/registry.h"

namespace ucas {

Graders graders_of(const Asked& asked) {
  Graders graders;
  for (const AskedSet& set : asked.sets) {
    graders.of[set.name] = make_grader(set.grader, set.extract);
  }
  return graders;
}

std::vector<Problem> problems_of(const EvalRecord& evaluation) {
  std::vector<Problem> problems;
  for (const ProblemRow& row : evaluation.rows) {
    Problem& problem = problems.emplace_back();
    problem.id = row.id;
    problem.source = row.source;
    problem.subject = row.subject;
    problem.text = row.problem;
    problem.gold = row.gold;
  }
  return problems;
}

std::vector<ProblemRow> rows_with_all_samples(const std::string& directory, const EvalRecord& evaluation) {
  const auto lacks = [](const ProblemRow& row) { return std::ssize(row.responses) < row.samples; };
  const std::string outputs = path_join(directory, evaluation.name + ".outputs.jsonl");
  const bool whole = std::ranges::none_of(evaluation.rows, lacks);
  if (whole || !exists(outputs) || !evaluation.asked) return evaluation.rows;
  const Graders graders = graders_of(*evaluation.asked);
  for (const ProblemRow& row : evaluation.rows) {
    if (graders.of.contains(row.source)) continue;
    throw Error(ErrorKind::data_line,
                str(path_join(directory, evaluation.name + ".jsonl"), ": problem ", printable(row.id),
                    " is of source \"", printable(row.source), "\", expected one that ", evaluation.name,
                    ".json names; evaluate again with another --out"));
  }
  const std::vector<Problem> problems = problems_of(evaluation);
  EvalConfig config = evaluation.config;
  config.stored_responses = config.samples;
  config.bootstrap_draws = 0;  // no figure of it is read
  const std::vector<Responses> responses =
      by_problem(problems, read_outputs(outputs).outputs, config.greedy, config.samples);
  return score(problems, responses, graders, config).rows;
}

}  // namespace ucas
