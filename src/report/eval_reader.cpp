#include "report/eval_reader.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "compare/answers.h"
#include "report/json_rows.h"

namespace ucas {

namespace {

constexpr int64_t kSmallFile = 4 << 20;

std::vector<FigureAt> at_k(const Json& root, const char* key, const std::string& where) {
  std::vector<FigureAt> list;
  const Json* value = member(root, key);
  if (!value) return list;
  if (!value->is_array()) refuse(where, key, *value, "a list of {k, value, low, high}");
  for (const Json& item : *value) {
    object_of(item, str(where, ": ", key));
    int64_t k = whole_at(item, "k", where, 0);
    if (k < 1) throw Error("data_line", str(where, ": ", key, ": k is ", k, ", expected at least 1"));
    list.push_back({k, interval_of(item, where)});
  }
  std::sort(list.begin(), list.end(), [](const FigureAt& a, const FigureAt& b) { return a.k < b.k; });
  return list;
}

CalibrationRecord calibration_at(const Json& object, const std::string& where) {
  object_of(object, where);
  CalibrationRecord c;
  c.auroc_logprob = number_at(object, "auroc_logprob", where);
  c.auroc_confidence = number_at(object, "auroc_confidence", where);
  c.ece = number_at(object, "ece", where);
  if (const Json* bins = member(object, "bins")) {
    if (!bins->is_array() || bins->size() > 1000) refuse(where, "bins", *bins, "a list of at most 1000 bins");
    for (const Json& item : *bins) {
      object_of(item, where + ": bins");
      int64_t count = whole_at(item, "count", where, 0);
      if (count < 0) throw Error("data_line", str(where, ": bins: count is ", count, ", expected at least 0"));
      c.bins.push_back({number_at(item, "low", where), number_at(item, "high", where), count,
                        number_at(item, "stated", where), number_at(item, "right", where)});
    }
  }
  return c;
}

void read_numbers(EvalNumbers& n, const Json& root, const std::string& where) {
  n.problems = whole_at(root, "problems", where, 0);
  n.entropy = number_at(root, "entropy", where);
  n.length = number_at(root, "length", where);
  n.truncated = number_at(root, "truncated_share", where);
  n.unparseable = number_at(root, "unparseable_share", where);
  if (const Json* greedy = member(root, "greedy")) {
    object_of(*greedy, str(where, ": greedy"));
    if (const Json* pass = member(*greedy, "pass@1")) {
      n.greedy = interval_of(object_of(*pass, str(where, ": greedy.pass@1")), where);
    }
  }
  n.mean_at = at_k(root, "mean@k", where);
  n.pass_at = at_k(root, "pass@k", where);
  n.majority_at = at_k(root, "maj@k", where);
  if (const Json* calibration = member(root, "calibration")) {
    n.calibration = calibration_at(*calibration, where + ": calibration");
  }
}

SampledResponse sampled_response(const Json& row, const std::string& where) {
  object_of(row, where);
  SampledResponse r{text_at(row, "response", where), text_at(row, "verdict", where), text_at(row, "answer", where),
                    whole_at(row, "tokens", where, -1)};
  if (const Json* finished = member(row, "finished")) {
    if (!finished->is_boolean()) refuse(where, "finished", *finished, "true or false");
    r.finished = finished->get<bool>();
  }
  r.logprob = number_at(row, "logprob", where);
  r.entropy = number_at(row, "entropy", where);
  r.confidence = number_at(row, "confidence", where);
  return r;
}

ProblemRow problem_row(const Json& row, const std::string& where) {
  ProblemRow problem;
  problem.id = text_at(row, "id", where);
  if (problem.id.empty()) throw Error("data_line", where + ": \"id\" is missing, expected what problems are paired by");
  problem.source = text_at(row, "source", where);
  problem.problem = text_at(row, "problem", where);
  problem.gold = texts_at(row, "gold", where);
  if (const Json* greedy = member(row, "greedy")) {
    problem.has_greedy = true;
    problem.greedy = sampled_response(*greedy, where + ": greedy");
  }
  problem.samples = whole_at(row, "samples", where, 0);
  problem.correct = whole_at(row, "correct", where, 0);
  if (problem.samples < 0 || problem.correct < 0 || problem.correct > problem.samples) {
    throw Error("data_line", str(where, ": correct = ", problem.correct, " of samples = ", problem.samples,
                                 ", expected a part of them"));
  }
  const std::string first = str("correct@", kQuotedSamples);
  problem.correct_of_first = whole_at(row, first.c_str(), where, -1);
  if (problem.correct_of_first >= 0) problem.first = kQuotedSamples;
  if (problem.correct_of_first > std::min(problem.first, problem.correct) || problem.first > problem.samples) {
    throw Error("data_line", str(where, ": ", first, " = ", problem.correct_of_first, ", correct = ", problem.correct,
                                 " of samples = ", problem.samples, ", expected a part of both"));
  }
  if (const Json* responses = member(row, "responses")) {
    if (!responses->is_array()) refuse(where, "responses", *responses, "a list");
    for (const Json& item : *responses) problem.responses.push_back(sampled_response(item, where + ": responses"));
  }
  return problem;
}

constexpr size_t kMostSets = 100, kDigits = 8;

// A value at a path of keys as text, cut to `limit`; "" where there is none.
std::string text_of(const Json& root, std::initializer_list<const char*> keys, size_t limit = 120) {
  const Json* at = &root;
  for (const char* key : keys) {
    at = at->is_object() ? member(*at, key) : nullptr;
    if (!at) return "";
  }
  std::string text =
      at->is_string() ? at->get<std::string>() : at->dump(-1, ' ', false, Json::error_handler_t::replace);
  return printable(text, limit);
}

std::string weights_digest(const Json& card) {
  std::vector<std::string> digests;
  const Json* model = member(card, "model");
  const Json* files = model && model->is_object() ? member(*model, "files") : nullptr;
  for (size_t i = 0; files && files->is_array() && i < files->size(); ++i) {
    const Json& file = (*files)[i];
    if (text_of(file, {"name"}).ends_with(".safetensors")) digests.push_back(text_of(file, {"sha256"}));
  }
  if (digests.size() == 1) return digests[0].substr(0, kDigits);
  return digests.empty() ? "" : hash_of_text(join(digests, " ")).substr(0, kDigits);
}

// Tolerant of keys that are absent: `ucas verify-run` is the judge of a card, this only shows it.
CardRecord read_card_record(const std::string& path) {
  Json root = read_json(path, kSmallFile);
  object_of(root, path);
  CardRecord card;
  card.name = text_of(root, {"sha256"}).substr(0, kDigits);
  card.model = weights_digest(root);
  std::vector<std::string> sampling;
  for (const char* key : {"samples", "temperature", "top_p", "top_k", "seed"}) {
    std::string value = text_of(root, {"sampling", key});
    if (!value.empty()) sampling.push_back(str(key, " ", value));
  }
  card.sampling = join(sampling, ", ");
  const Json* sets = member(root, "benchmarks");
  for (size_t i = 0; sets && sets->is_array() && i < std::min(sets->size(), kMostSets); ++i) {
    const Json& set = (*sets)[i];
    object_of(set, path + ": benchmarks");
    card.sets.push_back(
        {text_of(set, {"name"}), text_of(set, {"problems"}), text_of(set, {"problems_sha256"}).substr(0, kDigits),
         str(text_of(set, {"template", "name"}), " ", text_of(set, {"template", "sha256"}).substr(0, kDigits)),
         text_of(set, {"stop_texts"}, 200), text_of(set, {"max_tokens"}),
         join({text_of(set, {"grader", "kind"}), text_of(set, {"grader", "extract"})}, ", ")});
  }
  return card;
}

Figure at(const std::vector<FigureAt>& list, int64_t k) {
  for (const FigureAt& item : list) {
    if (item.k == k) return item.share;
  }
  return {};
}

}  // namespace

EvalRecord read_evaluation(const std::string& directory, const std::string& name, std::vector<std::string>& missing,
                           std::vector<std::string>& remarks) {
  EvalRecord result;
  result.name = name;
  std::string path = path_join(directory, name + ".json");
  Json root = read_json(path, kSmallFile);
  object_of(root, path);
  result.label = text_at(root, "label", path);
  result.model = text_at(root, "model", path);
  result.suite = text_at(root, "suite", path);
  result.data = join(texts_at(root, "data", path), ", ");
  result.interval = text_at(root, "interval", path);
  result.step = whole_at(root, "step", path, 0);
  result.samples = whole_at(root, "samples", path, 0);
  result.seed = whole_at(root, "seed", path, -1);
  result.temperature = number_at(root, "temperature", path);
  read_numbers(result, root, path);
  if (const Json* sources = member(root, "by_source")) {
    object_of(*sources, path + ": by_source");
    OrderedJson ordered = OrderedJson::parse(read_file(path, kSmallFile))["by_source"];  // the suite's order
    for (auto it = ordered.begin(); it != ordered.end(); ++it) {
      const Json& source = sources->at(it.key());
      std::string where = str(path, ": by_source.", printable(it.key()));
      EvalNumbers numbers;
      read_numbers(numbers, object_of(source, where), where);
      result.by_source.emplace_back(it.key(), std::move(numbers));
    }
  }
  if (const Json* macro = member(root, "macro")) {
    result.macro.emplace();
    read_numbers(*result.macro, object_of(*macro, path + ": macro"), path + ": macro");
  }
  std::string card = path_join(directory, name + ".card.json");
  if (exists(card)) result.card = read_card_record(card);
  std::string rows = path_join(directory, name + ".jsonl");
  if (!exists(rows)) {
    missing.push_back(str("eval/", name, ".jsonl (the responses of each problem)"));
    return result;
  }
  each_line(rows, remarks,
            [&](const Json& row, const std::string& where) { result.rows.push_back(problem_row(row, where)); });
  return result;
}

Figure figure_named(const EvalNumbers& n, const std::string& name) {
  auto alone = [](double value) { return Figure{value, kUnknown, kUnknown}; };
  if (name == "greedy") return n.greedy;
  for (const auto& [prefix, list] : {std::pair{"mean@", &n.mean_at}, {"pass@", &n.pass_at}, {"maj@", &n.majority_at}}) {
    std::string_view before = prefix;
    if (!name.starts_with(before)) continue;
    int64_t k = 0;
    const char* end = name.data() + name.size();
    auto [stop, error] = std::from_chars(name.data() + before.size(), end, k);
    return error == std::errc() && stop == end ? at(*list, k) : Figure{};
  }
  if (name == "entropy") return alone(n.entropy);
  if (name == "length") return alone(n.length);
  if (name == "truncated") return alone(n.truncated);
  if (name == "unparseable") return alone(n.unparseable);
  if (!n.calibration) return {};
  if (name == "ece") return alone(n.calibration->ece);
  if (name == "auroc_logprob") return alone(n.calibration->auroc_logprob);
  if (name == "auroc_confidence") return alone(n.calibration->auroc_confidence);
  return {};
}

bool is_share(const std::string& name) {
  return name == "greedy" || name.find('@') != std::string::npos || name == "truncated" || name == "unparseable";
}

}  // namespace ucas
