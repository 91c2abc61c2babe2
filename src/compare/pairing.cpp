#include "compare/pairing.h"

#include <algorithm>
#include <cmath>

#include "stats/spread.h"

namespace ucas {

namespace {

// Runs of both that have the same base and seed.
RunPairs by_label(const AnswerGroup& from, const AnswerGroup& to) {
  RunPairs out{Pairs::labelled, {}, from.runs.size() + to.runs.size()};
  std::vector<char> used(to.runs.size());
  for (const RunAnswers& a : from.runs) {
    for (size_t j = 0; j < to.runs.size(); ++j) {
      if (used[j] || !same_luck(a.label, to.runs[j].label)) continue;
      used[j] = 1;
      out.pairs.emplace_back(&a, &to.runs[j]);
      out.left_out -= 2;
      break;
    }
  }
  return out;
}

// The untrained run that a training began with: the one of its base, or the only one there is.
const RunAnswers* base_of(const AnswerGroup& untrained, const RunAnswers& run) {
  for (const RunAnswers& base : untrained.runs) {
    if (!run.label.base.empty() && base.label.base == run.label.base) return &base;
  }
  return untrained.runs.size() == 1 ? &untrained.runs[0] : nullptr;
}

RunPairs against_base(const AnswerGroup& untrained, const AnswerGroup& trained, bool base_first) {
  RunPairs out{Pairs::fixed, {}, 0};
  for (const RunAnswers& run : trained.runs) {
    const RunAnswers* base = base_of(untrained, run);
    out.left_out += base == nullptr;
    if (base) out.pairs.emplace_back(base_first ? base : &run, base_first ? &run : base);
  }
  return out;
}

}  // namespace

std::map<ProblemKey, const ProblemAnswers*> by_key(const RunAnswers& run) {
  std::map<std::pair<std::string, std::string>, int64_t> seen;
  std::map<ProblemKey, const ProblemAnswers*> out;
  for (const ProblemAnswers& p : run.problems) out[{p.source, p.id, seen[{p.source, p.id}]++}] = &p;
  return out;
}

RunPairs pair_runs(const AnswerGroup& from, const AnswerGroup& to) {
  if (from.runs.size() == 1 && to.runs.size() == 1) return {Pairs::one, {{&from.runs[0], &to.runs[0]}}, 0};
  RunPairs labelled = by_label(from, to);
  if (from.trained != to.trained) {
    RunPairs fixed = against_base(from.trained ? to : from, from.trained ? from : to, to.trained);
    if (fixed.pairs.size() > labelled.pairs.size()) return fixed;
  }
  if (labelled.pairs.size() == 1) labelled.kind = Pairs::one;
  if (!labelled.pairs.empty()) return labelled;
  return {Pairs::unpaired, {}, 0};
}

AlignedValues align(std::span<const RunAnswers* const> runs, const Quantity& quantity) {
  AlignedValues out;
  out.value.resize(runs.size());
  std::vector<std::map<ProblemKey, const ProblemAnswers*>> maps;
  for (const RunAnswers* run : runs) maps.push_back(by_key(*run));
  const bool macro = quantity.scope == "macro";
  std::string last;
  for (const auto& [key, ignored] : maps[0]) {  // in order of the source, so that strata lie side by side
    const std::string& source = std::get<0>(key);
    if (!macro && !quantity.scope.empty() && source != quantity.scope) continue;
    std::vector<double> row;
    for (const auto& map : maps) {
      const auto found = map.find(key);
      const double value = found == map.end() ? kUnknown : value_of(*found->second, quantity);
      if (!std::isnan(value)) row.push_back(value);
    }
    if (row.size() < runs.size()) continue;
    if (out.strata.empty() || (macro && source != last)) out.strata.push_back(0);
    ++out.strata.back();
    ++out.problems;
    last = source;
    for (size_t r = 0; r < row.size(); ++r) out.value[r].push_back(row[r]);
  }
  return out;
}

double mean_of_strata(const std::vector<double>& value, const std::vector<size_t>& strata) {
  double total = 0;
  size_t at = 0;
  for (size_t count : strata) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += value[at++];
    total += sum / static_cast<double>(count);
  }
  return strata.empty() ? kUnknown : total / static_cast<double>(strata.size());
}

}  // namespace ucas
