#include "evaluate/result.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

namespace ucas {

namespace {

// Model output is bytes; JSON is UTF-8. Broken sequences become U+FFFD.
std::string dump(const OrderedJson& value, int indent) {
  return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson json_of(const Estimate& e) { return {{"value", e.value}, {"low", e.low}, {"high", e.high}}; }

OrderedJson json_of(const std::vector<EstimateAt>& list) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& [k, e] : list) rows.push_back({{"k", k}, {"value", e.value}, {"low", e.low}, {"high", e.high}});
  return rows;
}

void add_greedy(OrderedJson& out, const EvalFigures& figures) {
  if (figures.greedy) out["greedy"] = {{"pass@1", json_of(*figures.greedy)}};
}

void add_samples(OrderedJson& out, const EvalFigures& figures) {
  out["mean@k"] = json_of(figures.mean);
  out["pass@k"] = json_of(figures.pass);
  out["maj@k"] = json_of(figures.majority);
  out["entropy"] = figures.entropy;
  out["length"] = figures.length;
  out["truncated_share"] = figures.truncated_share;
  out["unparseable_share"] = figures.unparseable_share;
}

OrderedJson json_of(const Calibration& c) {
  OrderedJson bins = OrderedJson::array();
  for (const ReliabilityBin& b : c.bins) {
    bins.push_back({{"low", b.low}, {"high", b.high}, {"count", b.count}, {"stated", b.stated}, {"right", b.right}});
  }
  return {{"auroc_logprob", c.auroc_logprob},
          {"auroc_confidence", c.auroc_confidence},
          {"ece", c.ece},
          {"bins", std::move(bins)}};
}

void add_calibration(OrderedJson& out, const EvalFigures& figures) {
  if (figures.calibration) out["calibration"] = json_of(*figures.calibration);
}

OrderedJson json_of(const MacroFigures& macro) {
  OrderedJson out = OrderedJson::object();
  if (macro.greedy) out["greedy"] = {{"pass@1", json_of(*macro.greedy)}};
  out["mean@k"] = json_of(macro.mean);
  out["pass@k"] = json_of(macro.pass);
  out["maj@k"] = json_of(macro.majority);
  return out;
}

OrderedJson json_of(const EvalResponse& r) {
  return {{"response", r.response}, {"verdict", name_of(r.verdict)}, {"answer", r.answer},
          {"tokens", r.tokens},     {"finished", r.finished},        {"ids", r.ids},
          {"logprob", r.logprob},   {"entropy", r.entropy},          {"confidence", r.confidence}};
}

void add_subjects(OrderedJson& out, const EvalResult& result) {
  for (const auto& [source, by_subject] : result.by_subject) {
    OrderedJson subjects = OrderedJson::object();
    for (const auto& [subject, figures] : by_subject.subjects) {
      OrderedJson& row = subjects[subject];
      row["problems"] = figures.problems;
      add_greedy(row, figures);
      add_samples(row, figures);
    }
    out["by_subject"][source] = {{"macro", json_of(by_subject.macro)}, {"subjects", std::move(subjects)}};
  }
}

}  // namespace

std::string to_json(const EvalResult& result) {
  const EvalConfig& config = result.config;
  OrderedJson out;
  out["label"] = result.label;
  out["model"] = result.model;
  if (!result.suite.empty()) out["suite"] = result.suite;
  out["step"] = result.step < 0 ? OrderedJson(nullptr) : OrderedJson(result.step);
  out["data"] = join(result.data, ", ");
  out["problems"] = result.overall.problems;
  add_greedy(out, result.overall);
  out["samples"] = config.samples;
  out["temperature"] = config.temperature;
  out["top_p"] = config.top_p;
  out["top_k"] = config.top_k;
  out["max_tokens"] = config.max_tokens;
  add_samples(out, result.overall);
  if (result.macro) out["macro"] = json_of(*result.macro);
  add_calibration(out, result.overall);
  out["interval"] =
      str(percent(config.confidence_level, 0), "; greedy: Clopper-Pearson; samples: bootstrap over problems, ",
          config.bootstrap_draws, " draws");
  out["seed"] = config.seed;
  OrderedJson sources = OrderedJson::object();
  for (const std::string& source : result.sources) {
    const EvalFigures& figures = result.by_source.at(source);
    OrderedJson& row = sources[source];
    row["problems"] = figures.problems;
    add_greedy(row, figures);
    add_samples(row, figures);
    add_calibration(row, figures);
  }
  out["by_source"] = std::move(sources);
  add_subjects(out, result);
  return dump(out, 2);
}

std::string to_jsonl(const EvalResult& result) {
  std::string lines;
  for (const EvalRow& row : result.rows) {
    OrderedJson out;
    out["id"] = row.id;
    out["source"] = row.source;
    if (!row.subject.empty()) out["subject"] = row.subject;
    out["problem"] = row.problem;
    out["gold"] = row.gold;
    if (row.greedy) out["greedy"] = json_of(*row.greedy);
    out["samples"] = row.samples;
    out["correct"] = row.correct;
    if (row.first > 0) out[str("correct@", row.first)] = row.correct_of_first;
    out["mean_length"] = row.mean_length;
    OrderedJson responses = OrderedJson::array();
    for (const EvalResponse& r : row.responses) responses.push_back(json_of(r));
    out["responses"] = std::move(responses);
    lines += dump(out, -1);
  }
  return lines;
}

void write_result(const EvalResult& result, const std::string& directory, const std::string& name) {
  make_directories(directory);
  write_file(path_join(directory, name + ".jsonl"), to_jsonl(result));
  write_file(path_join(directory, name + ".json"), to_json(result));
}

}  // namespace ucas
