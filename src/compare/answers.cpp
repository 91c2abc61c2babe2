#include "compare/answers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "stats/samples.h"
#include "stats/spread.h"

namespace ucas {

namespace {

const std::set<std::string> kOfRuns = {"entropy", "length", "truncated", "unparseable"};

}  // namespace

std::string content_of(const std::string& question, const std::vector<std::string>& gold) {
  return hash_of_text(str(question, '\0', join(gold, std::string(1, '\0'))));
}

bool same_luck(const RunLabel& a, const RunLabel& b) {
  return a.seed >= 0 && a.seed == b.seed && (a.base == b.base || a.base.empty() || b.base.empty());
}

std::string unit_of(const std::vector<RunLabel>& labels) {
  std::set<std::string> bases;
  std::set<int64_t> seeds;
  for (const RunLabel& label : labels) {
    bases.insert(label.base);
    seeds.insert(label.seed);
  }
  if (bases.size() > 1) return seeds.size() > 1 ? "bases and seeds" : "bases";
  return seeds.size() > 1 ? "seeds" : "runs";
}

std::string Quantity::text() const { return str(name, at.empty() ? "" : "@", at, scope.empty() ? "" : ":", scope); }

bool Quantity::is_share() const {
  return name != "entropy" && name != "length" && name != "steps_to" && name != "steps_to_val";
}

Quantity parse_quantity(const std::string& metric) {
  static const std::set<std::string> kOfSamples = {"mean", "pass", "frontier", "mixed"};
  const size_t at = metric.find('@');
  Quantity q{metric.substr(0, at), at == std::string::npos ? "" : metric.substr(at + 1), 0, ""};
  const char *begin = q.at.data(), *end = begin + q.at.size();
  const auto [stop, error] = std::from_chars(begin, end, q.k);
  const bool number = error == std::errc() && stop == end && q.k > 0;
  const bool plain = q.name == "greedy" || kOfRuns.contains(q.name) || q.takes_accuracy();
  if (kOfSamples.contains(q.name) ? number : plain && at == std::string::npos) return q;
  throw Error(ErrorKind::config,
              str("metric \"", printable(metric),
                  "\": expected greedy, mean@N, pass@K, mixed@K, frontier@K, reached, steps_to, val_at, steps_to_val, "
                  "entropy, length, truncated or unparseable"));
}

double value_of(const ProblemAnswers& p, const Quantity& q) {
  if (q.name == "greedy") return p.greedy < 0 ? kUnknown : static_cast<double>(p.greedy);
  if (p.samples <= 0) return kUnknown;
  if (q.name == "frontier") {
    const SampleCount own{p.samples, p.correct}, base{p.base_samples, p.base_correct};
    if (base.n <= q.k || q.k > own.n) return kUnknown;
    return p.is_base ? frontier_of_base(base, q.k) : frontier_at_k(base, own, q.k);
  }
  if (q.name == "mixed") {  // neither all right nor all wrong
    if (q.k > p.samples) return kUnknown;
    return pass_at_k({p.samples, p.correct}, q.k) + pass_at_k({p.samples, p.samples - p.correct}, q.k) - 1;
  }
  if (q.name == "pass") return q.k <= p.samples ? pass_at_k({p.samples, p.correct}, q.k) : kUnknown;
  if (q.name != "mean") return kUnknown;
  return q.k <= p.samples ? mean_at_n({p.samples, p.correct}) : kUnknown;  // all of them: the same expectation
}

std::vector<std::string> sources_of(const RunAnswers& run) {
  std::vector<std::string> sources;
  for (const ProblemAnswers& p : run.problems) {
    if (std::ranges::find(sources, p.source) == sources.end()) sources.push_back(p.source);
  }
  return sources;
}

double value_of(const RunAnswers& run, const Quantity& q) {
  if (q.name == "reached") {
    const double greedy = value_of(run, Quantity{"greedy", "", 0, q.scope});
    return std::isnan(greedy) ? kUnknown : greedy >= std::strtod(q.at.c_str(), nullptr) ? 1 : 0;
  }
  const auto mean_over = [&](const std::string& source) {
    std::vector<double> values;
    for (const ProblemAnswers& p : run.problems) {
      const double value = source.empty() || p.source == source ? value_of(p, q) : kUnknown;
      if (!std::isnan(value)) values.push_back(value);
    }
    return mean_of(values);
  };
  double value = kUnknown;
  if (q.of_problems() && q.scope == "macro") {
    std::vector<double> each;
    for (const std::string& source : sources_of(run)) each.push_back(mean_over(source));
    value = mean_of(each);
  } else if (q.of_problems()) {
    value = mean_over(q.scope);
  }
  const auto stored = run.figures.find(q.text());
  return std::isnan(value) && stored != run.figures.end() ? stored->second : value;
}

std::vector<Quantity> quoted_quantities(const std::vector<const RunAnswers*>& runs) {
  bool greedy = false, usual = true;
  std::set<int64_t> samples;
  for (const RunAnswers* run : runs) {
    greedy = greedy || run->figures.contains("greedy");
    for (const ProblemAnswers& p : run->problems) {
      greedy = greedy || p.greedy >= 0;
      if (p.samples <= 0) continue;
      samples.insert(p.samples);
      usual = usual && p.samples >= kQuotedSamples;
    }
  }
  std::vector<Quantity> out;
  if (greedy) out.push_back(parse_quantity("greedy"));
  if (samples.empty()) return out;
  if (usual) {
    out.push_back(parse_quantity(str("mean@", kQuotedSamples)));
  } else if (samples.size() == 1) {
    out.push_back(parse_quantity(str("mean@", *samples.begin())));
  } else {
    out.push_back({"mean", "n", 0, ""});
  }
  return out;
}

}  // namespace ucas
