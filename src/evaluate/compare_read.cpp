// What is compared: results in memory, or the files of a run.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "data/jsonl.h"
#include "evaluate/compare.h"

namespace ucas {

namespace {

constexpr int64_t kFiguresLimit = int64_t{64} << 20;

std::string content_of(const std::string& question, const std::vector<std::string>& gold) {
  return hash_of_text(str(question, '\0', join(gold, std::string(1, '\0'))));
}

int64_t count_field(const JsonRow& row, const char* key) {
  const auto found = row.value.find(key);
  if (found == row.value.end() || !found->is_number_integer() || found->get<int64_t>() < 0) {
    throw Error("data_line", str(row.where, ": \"", key, "\": expected a whole number from 0"));
  }
  return found->get<int64_t>();
}

ComparedProblem read_problem(const JsonRow& row) {
  ComparedProblem problem;
  problem.source = text_field(row, "source");
  problem.id = text_field(row, "id");
  const auto gold = row.value.find("gold");
  problem.content =
      content_of(text_field(row, "problem"),
                 gold == row.value.end() ? std::vector<std::string>{} : answer_field(row, *gold, "gold", true));
  problem.samples = count_field(row, "samples");
  problem.correct = count_field(row, "correct");
  if (problem.correct > problem.samples) {
    throw Error("data_line", str(row.where, ": correct = ", problem.correct, " of samples = ", problem.samples));
  }
  const auto greedy = row.value.find("greedy");
  if (greedy != row.value.end() && greedy->is_object()) {
    problem.greedy = text_field({*greedy, row.where, row.line}, "verdict") == name_of(VerdictKind::equal);
  }
  return problem;
}

// Of runs without a card.
std::vector<std::pair<std::string, std::string>> settings_of(const Json& figures) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!figures.is_object()) return out;
  for (const char* key : {"samples", "temperature", "top_p", "top_k", "max_tokens", "seed"}) {
    if (figures.contains(key) && figures.at(key).is_number()) out.emplace_back(key, str(figures.at(key).get<double>()));
  }
  return out;
}

}  // namespace

ComparedRun compared_run(const EvalResult& result) {
  ComparedRun run;
  run.name = result.label;
  run.seed = result.config.seed;
  for (const EvalRow& row : result.rows) {
    ComparedProblem& p = run.problems.emplace_back();
    p.source = row.source;
    p.id = row.id;
    p.content = content_of(row.problem, row.gold);
    if (row.greedy) p.greedy = row.greedy->verdict == VerdictKind::equal;
    p.samples = row.samples;
    p.correct = row.correct;
  }
  return run;
}

ComparedRun read_compared_run(const std::string& directory, const std::string& name) {
  ComparedRun run;
  run.name = directory;
  read_json_lines(path_join(directory, name + ".jsonl"), BadRows::stop,
                  [&](const JsonRow& row) { run.problems.push_back(read_problem(row)); });
  const std::string card = path_join(directory, name + ".card.json"), figures = path_join(directory, name + ".json");
  if (exists(card)) {
    run.settings = settings_of(read_card(card));
  } else if (exists(figures)) {
    run.settings = settings_of(read_json(figures, kFiguresLimit));
  }
  return run;
}

std::vector<std::pair<std::string, std::string>> settings_of(const Card& card) {
  std::vector<std::pair<std::string, std::string>> out;
  const EvalConfig& c = card.config;
  // One line where all benchmarks agree, else one a benchmark.
  const auto by_benchmark = [&](const std::string& key, auto text_of) {
    std::set<std::string> all;
    for (const Card::Set& set : card.benchmarks) all.insert(text_of(set));
    if (all.size() == 1) out.emplace_back(key, *all.begin());
    for (const Card::Set& set : card.benchmarks) {
      if (all.size() > 1) out.emplace_back(str(key, " of ", set.as.name), text_of(set));
    }
  };
  by_benchmark("template",
               [](const Card::Set& set) { return str(set.as.form.name, " (", set.template_sha256.substr(0, 8), ")"); });
  by_benchmark("max_tokens", [](const Card::Set& set) { return str(set.as.max_tokens); });
  by_benchmark("stop tokens", [](const Card::Set& set) { return join(set.as.stop_texts, " "); });
  by_benchmark("grader", [](const Card::Set& set) { return str(set.as.grader, " ", name_of(set.as.extract)); });
  for (const Card::Set& set : card.benchmarks) {
    out.emplace_back(str("problems of ", set.as.name), str(set.problems, " (", set.problems_sha256.substr(0, 8), ")"));
  }
  out.emplace_back("grader version", str(card.grader_version));
  out.emplace_back("truncated responses", c.truncated == EvalConfig::Truncated::grade ? "graded" : "wrong");
  out.emplace_back("samples", str(c.samples));
  if (c.samples > 0) {
    out.emplace_back("temperature", str(c.temperature));
    out.emplace_back("top_p", str(c.top_p));
    out.emplace_back("top_k", str(c.top_k));
    out.emplace_back("seed", str(c.seed));
    out.emplace_back("seed keys", card.keys);
  }
  return out;
}

}  // namespace ucas
