// Response confidence C(o|q) before and after training by whether the greedy response was right before and after: the
// scatter of the appendix, with each model's own z-score. Below it the means, with one z-score over both models, too:
// within a model's own scores every group's rise is another's fall.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/str.h"
#include "report/figures/figures.h"
#include "report/svg/svg_chart.h"
#include "stats/calibration.h"

namespace ucas {

namespace {

struct Pair {
  const ProblemRow *before = nullptr, *after = nullptr;
  double z_before = 0, z_after = 0;          // over the problems of each model
  double joint_before = 0, joint_after = 0;  // over those of both
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

void z_score(std::vector<Pair>& pairs) {
  std::vector<double> before, after, both;
  for (const Pair& pair : pairs) {
    before.push_back(pair.before->greedy->confidence);
    after.push_back(pair.after->greedy->confidence);
  }
  both = before;
  both.insert(both.end(), after.begin(), after.end());
  const double mean_before = mean_of(before), mean_after = mean_of(after), mean_both = mean_of(both);
  const double spread_before = deviation_of(before), spread_after = deviation_of(after), spread = deviation_of(both);
  auto z = [](double value, double mean, double deviation) {  // zero where all are alike
    return deviation > 0 ? (value - mean) / deviation : 0;
  };
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].z_before = z(before[i], mean_before, spread_before);
    pairs[i].z_after = z(after[i], mean_after, spread_after);
    pairs[i].joint_before = z(before[i], mean_both, spread);
    pairs[i].joint_after = z(after[i], mean_both, spread);
  }
}

double ranking(const std::vector<Pair>& pairs, const ProblemRow* Pair::* which) {
  std::vector<double> score;
  std::vector<bool> right;
  for (const Pair& pair : pairs) {
    score.push_back((pair.*which)->greedy->confidence);
    right.push_back((pair.*which)->greedy->right());
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

std::string signed_value_text(double value) {
  std::string text = fixed(value, 2);
  return text == "-0.00" ? "0.00" : text;
}

// What is drawn: a group after the base on one set of problems.
struct Drawn {
  std::string base, source;
  const RunGroup& group;
  bool several = false;                  // groups: each has its name in the file's
  std::vector<std::vector<Pair>> pairs;  // of each run that has them
  std::vector<std::string> runs;         // their names
};

std::string words(const Drawn& d, const std::vector<Pair>& pairs) {
  std::string out =
      str("One dot a problem: confidence of the greedy response (Eq. 6), z-scored over the problems of "
          "each model by itself, ",
          pairs.size(), " problems", d.source.empty() ? "" : " of " + d.source, "; ", d.base, " before, ",
          d.group.title, " after (", d.runs[0], "). ");
  for (size_t k = 0; k < kPairKinds.size(); ++k) {
    std::vector<double> x, y;
    for (const Pair& pair : pairs) {
      if (pair.kind() != k) continue;
      x.push_back(pair.z_before);
      y.push_back(pair.z_after);
    }
    out += str(k ? "; " : "", kPairKinds[k].name, " (", kPairKinds[k].words, "): ", x.size());
    if (!x.empty()) out += str(", mean ", signed_value_text(mean_of(x)), " to ", signed_value_text(mean_of(y)));
  }
  auto area = [](double value) { return std::isnan(value) ? std::string("unknown") : fixed(value, 3); };
  return out + str(". AUROC of confidence for being right: ", area(ranking(pairs, &Pair::before)), " before, ",
                   area(ranking(pairs, &Pair::after)), " after.");
}

// Every kind's mean before and after on both scales, a mean over the runs.
std::string table_of(const Drawn& d) {
  Table table{{"", "problems", "before, own z", "after", "change", "before, joint z", "after", "change"}};
  for (size_t k = 0; k < kPairKinds.size(); ++k) {
    std::vector<double> count, mean[6];
    for (const std::vector<Pair>& pairs : d.pairs) {
      std::vector<double> each[4];
      for (const Pair& pair : pairs) {
        if (pair.kind() != k) continue;
        size_t i = 0;
        for (double value : {pair.z_before, pair.z_after, pair.joint_before, pair.joint_after}) {
          each[i++].push_back(value);
        }
      }
      count.push_back(static_cast<double>(each[0].size()));
      if (each[0].empty()) continue;
      for (size_t i = 0; i < 2; ++i) {
        mean[3 * i].push_back(mean_of(each[2 * i]));
        mean[3 * i + 1].push_back(mean_of(each[2 * i + 1]));
        mean[3 * i + 2].push_back(mean_of(each[2 * i + 1]) - mean_of(each[2 * i]));
      }
    }
    std::vector<Cell> cells = {str(kPairKinds[k].name, " ", kPairKinds[k].words), spread_cell(count, false)};
    for (const std::vector<double>& values : mean) cells.push_back(spread_cell(values, false));
    table.add(std::move(cells));
  }
  const size_t runs = d.pairs.size();
  return str(table.markdown(), runs > 1 ? str("\nMean and standard deviation over ", runs, " seeds. ") : "\n",
             "Own z: each model's scores have mean 0 over the problems, so that where one row rises another must fall. "
             "Joint z has one mean and deviation for both models.\n");
}

std::string csv_of(const std::vector<Pair>& pairs) {
  Table table{{"source", "problem", "right_before", "right_after", "confidence_before", "confidence_after", "z_before",
               "z_after", "joint_before", "joint_after"}};
  for (const Pair& pair : pairs) {
    table.add({pair.after->source, pair.after->id, Cell::count(pair.right_before()), Cell::count(pair.right_after()),
               Cell::value(pair.before->greedy->confidence, false), Cell::value(pair.after->greedy->confidence, false),
               fixed(pair.z_before, 4), fixed(pair.z_after, 4), fixed(pair.joint_before, 4),
               fixed(pair.joint_after, 4)});
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
  chart.guides.push_back({ticks.at.front(), ticks.at.front(), ticks.at.back(), ticks.at.back(), ""});
  for (size_t k : {3, 0, 1, 2}) {  // the few that changed lie on top
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

StudyFigure figure(const Drawn& d) {
  const std::vector<Pair>& pairs = d.pairs[0];  // of the first seed that can be drawn
  StudyFigure out;
  out.name = str("confidence", d.several ? "-" + file_word(d.group.title) : "",
                 d.source.empty() ? "" : "-" + file_word(d.source));
  out.title = str("Confidence before and after training, ", d.group.title, d.source.empty() ? "" : ", " + d.source);
  out.note = words(d, pairs);
  Chart chart = scatter(pairs);
  chart.title = out.title;
  out.svg = svg_of(chart);
  out.csv = csv_of(pairs);
  out.table = table_of(d);
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
  const std::string lacking =
      "it takes a model before and one after training on the same problems, with confidence in eval/*.jsonl";
  const std::vector<std::string> sources =
      in.request.sources.empty() ? std::vector<std::string>{""} : sources_of(in, data);
  for (const RunGroup* group : after) {
    for (const std::string& source : sources) {
      Drawn drawn{base ? base->title : "", source, *group, after.size() > 1, {}, {}};
      for (const RunRecord* run : group->runs) {
        const EvalRecord *before = base ? of_seed(*base, data, run->seed) : nullptr,
                         *now = final_evaluation(*run, data);
        if (!before || !now) continue;
        std::vector<Pair> pairs = pairs_of(*before, *now, source);
        if (pairs.size() < 2) continue;
        z_score(pairs);
        drawn.pairs.push_back(std::move(pairs));
        drawn.runs.push_back(run->name);
      }
      if (drawn.pairs.empty()) continue;
      figures.push_back(figure(drawn));
    }
  }
  if (figures.empty() && in.lacking.empty()) in.lacking = lacking;
  return figures;
}

}  // namespace ucas
