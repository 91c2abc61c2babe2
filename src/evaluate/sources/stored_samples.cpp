#include "evaluate/sources/stored_samples.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "records/outputs.h"
#include "verify/registry.h"

namespace ucas {

namespace {

GraderKind grader_called(const std::string& name, const std::string& where) {
  const auto known = names(GraderKind{});
  const auto found = std::ranges::find(known, name);
  if (found != known.end()) return static_cast<GraderKind>(found - known.begin());
  throw Error(ErrorKind::header_json, str(where, ": grader \"", printable(name), "\", expected one of ",
                                          join(std::vector<std::string>(known.begin(), known.end()), ", ")));
}

}  // namespace

Graders graders_of(const Card& card, std::vector<std::string>& compared) {
  Graders graders;
  for (const Card::Set& set : card.benchmarks) {
    const GraderKind kind = grader_called(set.as.grader, card.path);
    graders.of[set.as.name] = make_grader(kind, set.as.extract);
    if (kind == GraderKind::choice) compared.push_back(set.as.name);
  }
  return graders;
}

std::vector<ProblemRow> rows_with_all_samples(const std::string& directory, const EvalRecord& evaluation) {
  const auto lacks = [](const ProblemRow& row) { return std::ssize(row.responses) < row.samples; };
  const std::string outputs = path_join(directory, evaluation.name + ".outputs.jsonl");
  const std::string card_path = path_join(directory, evaluation.name + ".card.json");
  const bool whole = std::ranges::none_of(evaluation.rows, lacks);
  if (whole || !exists(outputs) || !exists(card_path)) return evaluation.rows;
  const Card card = read_card(card_path);
  std::vector<std::string> compared;
  const Graders graders = graders_of(card, compared);
  std::vector<Problem> problems;
  for (const ProblemRow& row : evaluation.rows) {
    if (!graders.of.contains(row.source)) {
      throw Error(ErrorKind::data_line, str(path_join(directory, evaluation.name + ".jsonl"), ": problem ",
                                            printable(row.id), " is of source \"", printable(row.source),
                                            "\", expected one of the card's; see "
                                            "ucas verify-run"));
    }
    Problem& problem = problems.emplace_back();
    problem.id = row.id;
    problem.source = row.source;
    problem.subject = row.subject;
    problem.text = row.problem;
    problem.gold = row.gold;
  }
  EvalConfig config = card.config;
  config.stored_responses = config.samples;
  config.bootstrap_draws = 0;  // no figure of it is read
  const std::vector<Responses> responses =
      by_problem(problems, read_outputs(outputs).outputs, config.greedy, config.samples, compared);
  return score(problems, responses, graders, config).rows;
}

}  // namespace ucas
