#include "evaluate/answers.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr int64_t kFiguresLimit = int64_t{64} << 20;

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

RunAnswers answers_of(const EvalResult& result) {
  RunAnswers run;
  run.name = result.label;
  run.label.seed = result.config.seed;
  for (const EvalRow& row : result.rows) {
    ProblemAnswers& p = run.problems.emplace_back();
    p.source = row.source;
    p.id = row.id;
    p.content = content_of(row.problem, row.gold);
    if (row.greedy) p.greedy = row.greedy->verdict == VerdictKind::equal;
    p.samples = row.samples;
    p.correct = row.correct;
    p.first = row.first;
    p.correct_of_first = row.correct_of_first;
  }
  return run;
}

std::vector<std::pair<std::string, std::string>> recorded_settings(const std::string& directory,
                                                                   const std::string& name) {
  const std::string card = path_join(directory, name + ".card.json"), figures = path_join(directory, name + ".json");
  if (exists(card)) return settings_of(read_card(card));
  return exists(figures) ? settings_of(read_json(figures, kFiguresLimit))
                         : std::vector<std::pair<std::string, std::string>>{};
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
  by_benchmark("grader", [](const Card::Set& set) { return str(set.as.grader, " ", word_of(set.as.extract)); });
  for (const Card::Set& set : card.benchmarks) {
    out.emplace_back(str("problems of ", set.as.name), str(set.problems, " (", set.problems_sha256.substr(0, 8), ")"));
  }
  out.emplace_back("grader version", str(card.grader_version));
  out.emplace_back("truncated responses", c.truncated == Truncated::grade ? "graded" : "wrong");
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
