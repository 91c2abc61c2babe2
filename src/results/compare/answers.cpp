#include "results/compare/answers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "results/stats/samples.h"
#include "results/stats/spread.h"

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
  for (const auto& [key, ignored] : maps[0]) {  // in order of the source, so that strata are contiguous
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

RunAnswers answers_of(const EvalRecord& evaluation) {
  RunAnswers out;
  out.name = evaluation.label;
  out.label.seed = evaluation.config.seed;
  for (const ProblemRow& row : evaluation.rows) {
    ProblemAnswers& p = out.problems.emplace_back();
    p.source = row.source;
    p.id = row.id;
    p.content = content_of(row.problem, row.gold);
    if (row.greedy) p.greedy = row.greedy->right();
    p.samples = row.samples;
    p.correct = row.correct;
  }
  add_figures(out, evaluation, "");
  for (const auto& [source, numbers] : evaluation.by_source) add_figures(out, numbers, ":" + source);
  if (evaluation.macro) add_figures(out, *evaluation.macro, ":macro");
  return out;
}

RunAnswers answers_of(const RunRecord& run, const EvalRecord& evaluation) {
  RunAnswers out = answers_of(evaluation);
  out.name = run.path;
  out.label = run.luck();
  return out;
}

AnswerGroup answers_of(const RunGroup& group, const std::function<const EvalRecord*(const RunRecord&)>& choose) {
  AnswerGroup out{group.title, group.trained, {}};
  for (const RunRecord* run : group.runs) {
    if (const EvalRecord* evaluation = choose(*run)) out.runs.push_back(answers_of(*run, *evaluation));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> settings_of(const EvalRecord& evaluation, bool each) {
  std::vector<std::pair<std::string, std::string>> out;
  const EvalConfig& c = evaluation.config;
  const std::vector<AskedSet> sets = evaluation.asked ? evaluation.asked->sets : std::vector<AskedSet>{};
  // One line where all benchmarks agree, else one a benchmark.
  const auto by_benchmark = [&](const std::string& key, auto text_of) {
    std::set<std::string> all;
    for (const AskedSet& set : sets) all.insert(text_of(set));
    if (all.size() == 1 && !each) out.emplace_back(key, *all.begin());
    for (const AskedSet& set : sets) {
      if (all.size() > 1 || each) out.emplace_back(str(key, " of ", set.name), text_of(set));
    }
  };
  by_benchmark("template", [](const AskedSet& set) { return name_and_hash(set.prompt_template, set.template_sha256); });
  by_benchmark("max_tokens", [](const AskedSet& set) { return str(set.max_tokens); });
  by_benchmark("stop tokens", [](const AskedSet& set) { return join(set.stop_texts, " "); });
  by_benchmark("grader", [](const AskedSet& set) { return str(word_of(set.grader), " ", word_of(set.extract)); });
  for (const AskedSet& set : sets) {
    out.emplace_back(str("problems of ", set.name), name_and_hash(str(set.problems), set.problems_sha256));
  }
  if (evaluation.asked) {
    out.emplace_back("grader version", str(evaluation.asked->grader_version));
    out.emplace_back("truncated responses", c.truncated == Truncated::grade ? "graded" : "wrong");
    out.emplace_back("dtype", word_of(c.dtype));
  }
  out.emplace_back("samples", str(c.samples));
  if (c.samples > 0) {
    out.emplace_back("temperature", str(c.temperature));
    out.emplace_back("top_p", str(c.top_p));
    out.emplace_back("top_k", str(c.top_k));
    if (c.min_p > 0) out.emplace_back("min_p", str(c.min_p));
    out.emplace_back("seed", str(c.seed));
    if (evaluation.asked) out.emplace_back("seed keys", evaluation.asked->keys);
  }
  return out;
}

namespace {

std::set<std::string> evaluations_of(const RunRecord& run) {
  std::set<std::string> names;
  for (const EvalRecord& evaluation : run.evaluations) {
    if (!evaluation.rows.empty()) names.insert(evaluation.name);
  }
  return names;
}

}  // namespace

std::string choose_evaluation(const std::vector<RunRecord>& runs, const std::string& asked) {
  std::set<std::string> common = evaluations_of(runs[0]);
  for (const RunRecord& run : runs) {
    const std::set<std::string> names = evaluations_of(run);
    if (names.empty()) {
      throw Error(ErrorKind::empty, str(run.path,
                                        ": no evaluation with answers per problem (eval/NAME.json and NAME.jsonl); "
                                        "`ucas evaluate` makes one of a checkpoint, in a directory for each model"));
    }
    if (!asked.empty() && !names.contains(asked)) {
      throw Error(ErrorKind::path, str(run.path, ": no evaluation \"", printable(asked), "\"; there is ",
                                       join({names.begin(), names.end()}, ", ")));
    }
    std::erase_if(common, [&](const std::string& name) { return !names.contains(name); });
  }
  if (!asked.empty()) return asked;
  if (common.empty())
    throw Error(ErrorKind::empty, "the runs share no evaluation by name; --data NAME compares one that all have");
  // Validations of a training have steps for names; what is compared is what was evaluated at its end.
  std::vector<std::string> named;
  std::copy_if(common.begin(), common.end(), std::back_inserter(named),
               [](const std::string& name) { return !name.starts_with("step-"); });
  if (named.empty()) named = {*common.rbegin()};
  if (named.size() > 1) {
    throw Error(ErrorKind::config, str(runs.size() == 1 ? str(runs[0].path, ": several evaluations: ")
                                                        : "the runs share several evaluations: ",
                                       join(named, ", "), "; choose one with --data NAME"));
  }
  return named[0];
}

std::vector<AnswerGroup> compared_groups(const std::vector<std::string>& paths, const std::string& asked) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  const std::string name = choose_evaluation(runs, asked);
  // The groups keep the order of the command line: the first run is the one that others are held against.
  const std::vector<RunGroup> grouped_runs = group_runs(runs);
  std::vector<const RunGroup*> order;
  for (const RunGroup& group : grouped_runs) order.push_back(&group);
  const auto first = [](const RunGroup* group) { return *std::min_element(group->runs.begin(), group->runs.end()); };
  std::sort(order.begin(), order.end(), [&](const RunGroup* a, const RunGroup* b) { return first(a) < first(b); });
  const auto choose = [&](const RunRecord& run) {
    return &*std::ranges::find(run.evaluations, name, &EvalRecord::name);
  };
  std::vector<AnswerGroup> groups;
  for (const RunGroup* from : order) {
    groups.push_back(answers_of(*from, choose));
    for (size_t i = 0; i < from->runs.size(); ++i) {
      groups.back().runs[i].settings = settings_of(*choose(*from->runs[i]));
    }
  }
  return groups;
}

}  // namespace ucas
