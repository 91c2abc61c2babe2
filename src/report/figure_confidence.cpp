// Response confidence C(o|q) before and after training, z-scored over the problems of each model, by whether the
// greedy response was right before and after: the scatter of the appendix.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/str.h"
#include "report/figures.h"
#include "report/svg_chart.h"
#include "stats/calibration.h"

namespace ucas {

namespace {

struct Pair {
  const ProblemRow *before = nullptr, *after = nullptr;
  double z_before = 0, z_after = 0;
  bool right_before() const { return before->greedy.verdict == "equal"; }
  bool right_after() const { return after->greedy.verdict == "equal"; }
  size_t kind() const { return right_before() ? (right_after() ? 0 : 1) : (right_after() ? 2 : 3); }
};

struct Kind {
  const char* name;
  const char* words;
  size_t color;
};
constexpr std::array<Kind, 4> kKinds = {{{"1-1", "right before and after", 3},
                                         {"1-0", "lost", 6},
                                         {"0-1", "gained", 1},
                                         {"0-0", "wrong before and after", 0}}};

std::vector<Pair> pairs_of(const EvalRecord& before, const EvalRecord& after) {
  std::map<std::pair<std::string, std::string>, const ProblemRow*> by_id;
  auto known = [](const ProblemRow& row) { return row.has_greedy && std::isfinite(row.greedy.confidence); };
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

// Zero where all are alike.
void z_score(std::vector<Pair>& pairs, const ProblemRow* Pair::* which, double Pair::* z) {
  std::vector<double> values;
  for (const Pair& pair : pairs) values.push_back((pair.*which)->greedy.confidence);
  double mean = mean_of(values), deviation = deviation_of(values);
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].*z = deviation > 0 ? (values[i] - mean) / deviation : 0;
  }
}

double ranking(const std::vector<Pair>& pairs, const ProblemRow* Pair::* which) {
  std::vector<double> score;
  std::vector<bool> right;
  for (const Pair& pair : pairs) {
    score.push_back((pair.*which)->greedy.confidence);
    right.push_back((pair.*which)->greedy.verdict == "equal");
  }
  return auroc(score, right);
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

std::string signed_text(double value) {
  std::string text = fixed(value, 2);
  return text == "-0.00" ? "0.00" : text;
}

std::string words(const std::vector<Pair>& pairs, const std::string& base, const std::string& after,
                  const std::string& run) {
  std::string out = str("One dot a problem: confidence of the greedy response (Eq. 6), z-scored over the ",
                        pairs.size(), " problems of each model; ", base, " before, ", after, " after (", run, "). ");
  for (size_t k = 0; k < kKinds.size(); ++k) {
    std::vector<double> x, y;
    for (const Pair& pair : pairs) {
      if (pair.kind() != k) continue;
      x.push_back(pair.z_before);
      y.push_back(pair.z_after);
    }
    out += str(k ? "; " : "", kKinds[k].name, " (", kKinds[k].words, "): ", x.size());
    if (!x.empty()) out += str(", mean ", signed_text(mean_of(x)), " to ", signed_text(mean_of(y)));
  }
  auto area = [](double value) { return std::isnan(value) ? std::string("unknown") : fixed(value, 3); };
  return out + str(". AUROC of confidence for being right: ", area(ranking(pairs, &Pair::before)), " before, ",
                   area(ranking(pairs, &Pair::after)), " after.");
}

StudyFigure figure(std::vector<Pair> pairs, const std::string& base, const RunGroup& group, const RunRecord& run,
                   bool several) {
  z_score(pairs, &Pair::before, &Pair::z_before);
  z_score(pairs, &Pair::after, &Pair::z_after);
  StudyFigure out;
  out.name = str("confidence", several ? "-" + file_word(group.title) : "");
  out.title = str("Confidence before and after training, ", group.title);
  out.note = words(pairs, base, group.title, run.name);
  Chart chart;
  chart.title = out.title;
  chart.width = 460;
  chart.height = 440;
  chart.square = true;
  chart.x.title = "confidence before (z)";
  chart.y.title = "confidence after (z)";
  out.csv = "source,problem,right_before,right_after,confidence_before,confidence_after,z_before,z_after\n";
  double low = 0, high = 0;
  for (const Pair& pair : pairs) {
    low = std::min({low, pair.z_before, pair.z_after});
    high = std::max({high, pair.z_before, pair.z_after});
    out.csv += str(csv_text(pair.after->source), ",", csv_text(pair.after->id), ",", int(pair.right_before()), ",",
                   int(pair.right_after()), ",", pair.before->greedy.confidence, ",", pair.after->greedy.confidence,
                   ",", fixed(pair.z_before, 4), ",", fixed(pair.z_after, 4), "\n");
  }
  Ticks ticks = round_ticks(low, high == low ? low + 1 : high, 6);
  for (ChartAxis* axis : {&chart.x, &chart.y}) axis->low = ticks.at.front(), axis->high = ticks.at.back();
  chart.guides.push_back({ticks.at.front(), ticks.at.front(), ticks.at.back(), ticks.at.back(), ""});
  for (size_t k : {3, 0, 1, 2}) {  // the few that changed lie on top
    ChartSeries s;
    s.color = kKinds[k].color;
    s.line = false;
    s.dots = true;
    s.radius = 3;
    s.opacity = pairs.size() > 400 ? 0.45 : 0.7;
    for (const Pair& pair : pairs) {
      if (pair.kind() != k) continue;
      s.marks.push_back({pair.z_before, pair.z_after, kUnknown, kUnknown, pairs.size() > 400 ? "" : pair.after->id});
    }
    s.name = str(kKinds[k].name, " ", kKinds[k].words, " (", s.marks.size(), ")");
    chart.series.push_back(std::move(s));
  }
  out.svg = svg_of(chart);
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
  in.lacking = "it takes a model before and one after training on the same problems, with confidence in eval/*.jsonl";
  for (const RunGroup* group : after) {
    for (const RunRecord* run : group->runs) {  // the first seed that can be drawn
      const EvalRecord *before = base ? of_seed(*base, data, run->seed) : nullptr, *now = final_evaluation(*run, data);
      if (!before || !now) continue;
      std::vector<Pair> pairs = pairs_of(*before, *now);
      if (pairs.size() < 2) continue;
      figures.push_back(figure(std::move(pairs), base->title, *group, *run, after.size() > 1));
      break;
    }
  }
  return figures;
}

}  // namespace ucas
