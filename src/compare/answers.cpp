#include "compare/answers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/hash.h"
#include "base/str.h"
#include "stats/samples.h"
#include "stats/spread.h"

namespace ucas {

namespace {

const std::set<std::string> kOfRuns = {"entropy", "length", "truncated", "unparseable"};

template <class Number>
bool read_number(const std::string& text, Number& value) {
  const char *begin = text.data(), *end = begin + text.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end;
}

// Where the name takes a number behind @, whether it is one.
bool fits(Quantity& q) {
  if (q.at.empty()) return q.name == "greedy" || kOfRuns.contains(q.name);
  static const std::set<std::string> kOfSamples = {"mean", "pass", "frontier", "mixed", "matched_pass"};
  if (kOfSamples.contains(q.name)) return read_number(q.at, q.k) && q.k > 0;
  double share = 0;
  return (q.of_training() || q.name == "reached") && read_number(q.at, share) && share > 0 && share <= 1;
}

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

Quantity parse_quantity(const std::string& text) {
  Quantity q;
  const std::string metric = text.substr(0, text.find(':'));
  if (metric.size() < text.size()) q.scope = text.substr(metric.size() + 1);
  const size_t at = metric.find('@');
  q.name = metric.substr(0, at);
  if (at != std::string::npos) q.at = metric.substr(at + 1);
  const bool scoped = metric.size() < text.size();
  const bool whole = q.of_training() || q.name == "matched_pass";
  if (fits(q) && !(scoped && (q.scope.empty() || whole))) return q;
  throw Error(ErrorKind::config,
              str("column \"", printable(text),
                  "\": expected greedy, mean@N, pass@K, mixed@K, frontier@K, reached@SHARE, entropy, length, truncated "
                  "or unparseable, alone or with :SOURCE, :* or :macro; or matched_pass@K; or steps_to@SHARE, "
                  "val_at@SHARE with a training accuracy, steps_to_val@SHARE with a validation accuracy between 0 and "
                  "1"));
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
  if (q.k == 0 || q.k == p.samples) return mean_at_n({p.samples, p.correct});
  return q.k == p.first ? mean_at_n({p.first, p.correct_of_first}) : kUnknown;
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
      usual = usual && (p.samples == kQuotedSamples || p.first == kQuotedSamples);
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
