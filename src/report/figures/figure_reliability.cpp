// Stated probability of a response against the share that is right, and how often each is stated.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "report/figures/figures.h"
#include "report/summary.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

constexpr size_t kMostDrawn = 6;

struct Calibrated {
  const RunGroup* group = nullptr;
  std::vector<ReliabilityBin> bins;  // of all runs together
  std::vector<double> ece, auroc;    // one a run
  int64_t responses = 0;
};

Calibrated calibrated(const RunGroup& group, const std::string& data) {
  Calibrated c{&group, {}, {}, {}, 0};
  for (const RunRecord* run : group.runs) {
    const EvalRecord* e = final_evaluation(*run, data);
    if (!e || !e->calibration || e->calibration->bins.empty()) continue;
    const std::vector<ReliabilityBin>& bins = e->calibration->bins;
    if (!c.bins.empty() && c.bins.size() != bins.size()) continue;
    if (c.bins.empty()) {
      c.bins = bins;
      for (ReliabilityBin& bin : c.bins) bin.count = 0, bin.stated = bin.right = 0;
    }
    for (size_t i = 0; i < bins.size(); ++i) {
      auto n = static_cast<double>(bins[i].count);
      c.bins[i].count += bins[i].count;
      c.responses += bins[i].count;
      if (bins[i].count == 0) continue;
      c.bins[i].stated += n * bins[i].stated;  // sums until all runs are in
      c.bins[i].right += n * bins[i].right;
    }
    if (std::isfinite(e->calibration->ece)) c.ece.push_back(e->calibration->ece);
    if (std::isfinite(e->calibration->auroc_logprob)) c.auroc.push_back(e->calibration->auroc_logprob);
  }
  for (ReliabilityBin& bin : c.bins) {
    if (bin.count == 0) continue;
    bin.stated /= static_cast<double>(bin.count);
    bin.right /= static_cast<double>(bin.count);
  }
  return c;
}

void draw_diagram(SvgCanvas& canvas, PlotFrame& f, const std::vector<Calibrated>& all,
                  const std::vector<RunGroup>& groups) {
  ChartAxis x, y;
  y.title = "share right";
  x.percent = y.percent = true;
  draw_axes(canvas, f, x, y, false);
  canvas.line(f.X(0), f.Y(0), f.X(1), f.Y(1), {kFaint, 1, "3 3"});
  for (const Calibrated& c : all) {
    size_t color = c.group->color;
    std::vector<std::pair<double, double>> points;
    for (const ReliabilityBin& bin : c.bins) {
      if (bin.count > 0) points.emplace_back(f.X(bin.stated), f.Y(bin.right));
    }
    canvas.polyline(points, {color, 2, dashed(*c.group, groups) ? "6 4" : ""});
    for (const ReliabilityBin& bin : c.bins) {
      if (bin.count == 0) continue;
      double size = 2.2 + 4 * std::sqrt(static_cast<double>(bin.count) / static_cast<double>(c.responses));
      canvas.circle(f.X(bin.stated), f.Y(bin.right), size, color, 0.85,
                    str(c.group->title, ": ", bin.count, " responses stated ", percent(bin.stated), ", right ",
                        percent(bin.right)));
    }
  }
}

void draw_histogram(SvgCanvas& canvas, PlotFrame& f, const std::vector<Calibrated>& all) {
  ChartAxis x, y;
  x.title = "stated probability, exp of the mean log-prob of its tokens";
  y.title = "responses";
  x.percent = y.percent = true;
  draw_axes(canvas, f, x, y);
  for (size_t g = 0; g < all.size(); ++g) {
    for (const ReliabilityBin& bin : all[g].bins) {
      double width = (f.X(bin.high) - f.X(bin.low) - 2) / static_cast<double>(all.size());
      double share = static_cast<double>(bin.count) / static_cast<double>(all[g].responses);
      double left = f.X(bin.low) + 1 + width * static_cast<double>(g);
      canvas.rectangle(left, f.Y(share), width, f.Y(0) - f.Y(share), all[g].group->color, 0.55);
    }
  }
}

std::string svg(const std::vector<Calibrated>& all, const std::vector<RunGroup>& groups) {
  double most = 0, widest = 0;
  for (const Calibrated& c : all) {
    for (const ReliabilityBin& bin : c.bins) {
      most = std::max(most, static_cast<double>(bin.count) / static_cast<double>(c.responses));
    }
    widest = std::max(widest, text_width(c.group->title, 11.5));
  }
  Ticks ticks = round_ticks(0, most, 2);
  SvgCanvas canvas(460, 480, "Reliability diagram");
  PlotFrame top{60, 12, 380, 280}, bottom{60, 312, 380, 70};
  top.y_high = 1;
  bottom.y_high = std::min(1.0, ticks.at.back());
  draw_diagram(canvas, top, all, groups);
  draw_histogram(canvas, bottom, all);
  auto columns = std::max<size_t>(1, static_cast<size_t>(380 / (std::min(widest, 340.0) + 34)));
  for (size_t g = 0; g < all.size(); ++g) {
    double x = 60 + 380.0 / static_cast<double>(columns) * static_cast<double>(g % columns);
    double y = 430 + 17 * static_cast<double>(g / columns);
    canvas.rectangle(x, y, 10, 10, all[g].group->color, 1, 2);
    canvas.text(x + 16, y + 9, fit_text(all[g].group->title, 11.5, 380.0 / static_cast<double>(columns) - 24),
                {11.5, kInk});
  }
  canvas.grow(436 + 17 * static_cast<double>((all.size() + columns - 1) / columns));
  return canvas.document();
}

}  // namespace

std::vector<StudyFigure> reliability_figures(const FigureInput& in) {
  std::string data = asked_data(in);
  std::vector<Calibrated> all;
  for (const RunGroup& group : in.groups) {
    Calibrated c = calibrated(group, data);
    if (c.responses > 0) all.push_back(std::move(c));
  }
  if (all.empty()) {
    in.lacking = "no evaluation has calibration bins";
    return {};
  }
  std::vector<Calibrated> drawn(all.begin(),
                                all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMostDrawn)));
  StudyFigure figure;
  figure.name = "reliability";
  figure.title = "Reliability: stated probability against share right";
  figure.note = str("On ", data_words(in, data), "; ", all[0].bins.size(),
                    " bins, larger dots hold more responses; on the diagonal a model "
                    "is right as often as it says. ECE (and AUROC of the log-prob): ");
  Table numbers{{"group", "low", "high", "count", "stated", "right"}};
  for (const Calibrated& c : drawn) {
    figure.note += str(&c == drawn.data() ? "" : "; ", c.group->title, " ", spread_cell(c.ece, false).text(), " (",
                       spread_cell(c.auroc, false).text(), ")");
  }
  for (const Calibrated& c : all) {
    for (const ReliabilityBin& bin : c.bins) {
      const auto number = [&](double value) { return Cell::value(bin.count > 0 ? value : kUnknown, true); };
      numbers.add({c.group->title, Cell::value(bin.low, true), Cell::value(bin.high, true), Cell::count(bin.count),
                   number(bin.stated), number(bin.right)});
    }
  }
  figure.note += ".";
  if (all.size() > drawn.size()) {
    figure.note += str(" The numbers of ", all.size() - drawn.size(), " more groups are in the table alone.");
  }
  figure.csv = numbers.csv();
  figure.svg = svg(drawn, in.groups);
  return {figure};
}

}  // namespace ucas
