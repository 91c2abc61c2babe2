// Response confidence C(o|q) before and after training by whether the greedy response was right before and after: the
// scatter of the appendix, with each model's own z-score.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/str.h"
#include "report/study_figures.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

struct Pair {
  const ProblemRow *before = nullptr, *after = nullptr;
  double z_before = 0, z_after = 0;  // over the problems of each model
  bool right_before() const { return before->greedy->right(); }
  bool right_after() const { return after->greedy->right(); }
  size_t kind() const { return right_before() ? (right_after() ? 0 : 1) : (right_after() ? 2 : 3); }
};

struct PairKind {
  const char* name;
  const char* words;
  size_t color;
};
constexpr std::array<PairKind, 4> kPairKinds = {{{"1-1", "right before and after", 3},
                                                 {"1-0", "lost", 6},
                                                 {"0-1", "gained", 1},
                                                 {"0-0", "wrong before and after", 0}}};

std::vector<Pair> pairs_of(const EvalRecord& before, const EvalRecord& after, const std::string& source) {
  std::map<std::pair<std::string, std::string>, const ProblemRow*> by_id;
  auto known = [&](const ProblemRow& row) {
    return row.greedy && std::isfinite(row.greedy->confidence) && (source.empty() || row.source == source);
  };
  for (const ProblemRow& row : before.rows) {
    if (known(row)) by_id.emplace(std::pair(row.source, row.id), &row);
  }
  std::vector<Pair> pairs;
  for (const ProblemRow& row : after.rows) {
    auto found = by_id.find({row.source, row.id});
    if (found != by_id.end() && known(row)) pairs.push_back({found->second, &row});
  }
  return pairs;
}

void z_score(std::vector<Pair>& pairs, const ProblemRow* Pair::* which, double Pair::* z) {
  std::vector<double> values;
  for (const Pair& pair : pairs) values.push_back((pair.*which)->greedy->confidence);
  const double mean = mean_of(values), deviation = deviation_of(values);
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].*z = deviation > 0 ? (values[i] - mean) / deviation : 0;  // zero where all are alike
  }
}

// The model before training: the first untrained group. Where nothing was trained here, the others come after the first
// one that was given.
const RunGroup* base_of(const std::vector<RunGroup>& groups) {
  for (const RunGroup& group : groups) {
    if (!group.trained) return &group;
  }
  return nullptr;
}

const EvalRecord* of_seed(const RunGroup& group, const std::string& data, int64_t seed) {
  const EvalRecord* found = nullptr;
  for (const RunRecord* run : group.runs) {
    const EvalRecord* e = final_evaluation(*run, data);
    if (e && (!found || run->seed == seed)) found = e;
  }
  return found;
}

// What is plotted: the first run of a group that has the pairs, after the base, on one set of problems.
struct Plotted {
  std::string base, source;
  const RunGroup& group;
  bool several = false;  // groups: each has its name in the file's
  std::vector<Pair> pairs;
  std::string run;
};

std::string words(const Plotted& d) {
  std::string out =
      str("One dot a problem: confidence of the greedy response (Eq. 6), z-scored over the problems of "
          "each model by itself, ",
          d.pairs.size(), " problems", d.source.empty() ? "" : " of " + d.source, "; ", d.base, " before, ",
          d.group.title, " after (", d.run, "). ");
  for (size_t k = 0; k < kPairKinds.size(); ++k) {
    std::vector<double> before, after;
    for (const Pair& pair : d.pairs) {
      if (pair.kind() != k) continue;
      before.push_back(pair.z_before);
      after.push_back(pair.z_after);
    }
    out += str(k ? "; " : "", kPairKinds[k].name, " (", kPairKinds[k].words, "): ", before.size());
    if (!before.empty()) out += str(", mean ", signed_text(mean_of(before), 2), " to ", signed_text(mean_of(after), 2));
  }
  return out + ".";
}

std::string csv_of(const std::vector<Pair>& pairs) {
  Table table{{"source", "problem", "right_before", "right_after", "confidence_before", "confidence_after", "z_before",
               "z_after"}};
  for (const Pair& pair : pairs) {
    table.add({pair.after->source, pair.after->id, Cell::count(pair.right_before()), Cell::count(pair.right_after()),
               Cell::value(pair.before->greedy->confidence, false), Cell::value(pair.after->greedy->confidence, false),
               fixed(pair.z_before, 4), fixed(pair.z_after, 4)});
  }
  return table.csv();
}

Chart scatter(const std::vector<Pair>& pairs) {
  Chart chart;
  chart.width = 460;
  chart.height = 440;
  chart.square = true;
  chart.x.title = "confidence before (z)";
  chart.y.title = "confidence after (z)";
  double low = 0, high = 0;
  for (const Pair& pair : pairs) {
    low = std::min({low, pair.z_before, pair.z_after});
    high = std::max({high, pair.z_before, pair.z_after});
  }
  Ticks ticks = round_ticks(low, high == low ? low + 1 : high, 6);
  for (ChartAxis* axis : {&chart.x, &chart.y}) axis->low = ticks.at.front(), axis->high = ticks.at.back();
  for (size_t k : {3, 0, 1, 2}) {  // the few that changed are on top
    ChartSeries s;
    s.color = kPairKinds[k].color;
    s.line = false;
    s.dots = true;
    s.radius = 3;
    s.opacity = pairs.size() > 400 ? 0.45 : 0.7;
    for (const Pair& pair : pairs) {
      if (pair.kind() != k) continue;
      s.marks.push_back({pair.z_before, pair.z_after, kUnknown, kUnknown, pairs.size() > 400 ? "" : pair.after->id});
    }
    s.name = str(kPairKinds[k].name, " ", kPairKinds[k].words, " (", s.marks.size(), ")");
    chart.series.push_back(std::move(s));
  }
  return chart;
}

StudyFigure figure(const Plotted& d) {
  StudyFigure out;
  out.name = str("confidence", d.several ? "-" + file_word(d.group.title) : "",
                 d.source.empty() ? "" : "-" + file_word(d.source));
  out.title = str("Confidence before and after training, ", d.group.title, d.source.empty() ? "" : ", " + d.source);
  out.note = words(d);
  Chart chart = scatter(d.pairs);
  chart.title = out.title;
  out.svg = svg_of(chart);
  out.csv = csv_of(d.pairs);
  return out;
}

}  // namespace

std::vector<StudyFigure> confidence_figures(const FigureInput& in) {
  std::string data = asked_data(in);
  std::vector<StudyFigure> figures;
  const RunGroup* base = base_of(in.groups);
  std::vector<const RunGroup*> after;
  for (const RunGroup& group : in.groups) {
    if (group.trained) after.push_back(&group);
  }
  for (const RunGroup& group : in.groups) {
    if (base && (after.empty() || !after[0]->trained) && &group != base) after.push_back(&group);
  }
  const std::vector<std::string> sources =
      in.request.sources.empty() ? std::vector<std::string>{""} : sources_of(in, data);
  for (const RunGroup* group : after) {
    for (const std::string& source : sources) {
      Plotted plotted{base ? base->title : "", source, *group, after.size() > 1, {}, ""};
      for (const RunRecord* run : group->runs) {
        const EvalRecord *before = base ? of_seed(*base, data, run->seed) : nullptr,
                         *now = final_evaluation(*run, data);
        if (!before || !now || plotted.pairs.size() > 1) continue;
        plotted.pairs = pairs_of(*before, *now, source);
        plotted.run = run->name;
      }
      if (plotted.pairs.size() < 2) continue;
      z_score(plotted.pairs, &Pair::before, &Pair::z_before);
      z_score(plotted.pairs, &Pair::after, &Pair::z_after);
      figures.push_back(figure(plotted));
    }
  }
  if (figures.empty()) {
    throw Error(ErrorKind::empty,
                "it takes a model before and one after training on the same problems, with confidence in eval/*.jsonl");
  }
  return figures;
}

}  // namespace ucas
