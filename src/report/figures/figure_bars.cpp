// A result a group with its spread over seeds.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "report/study_figures.h"
#include "report/summary.h"
#include "report/svg/svg_chart.h"

namespace ucas {

std::vector<StudyFigure> bar_figures(const FigureInput& in) {
  std::string data = asked_data(in), metric = in.request.metric;
  bool share = is_share(metric), spread = false;
  BarChart chart;
  chart.title = str(metric_words(metric), " by group");
  chart.x.title = metric_words(metric);
  chart.x.percent = share;
  Table numbers{{"group", "mean", "std", "low", "high", "runs"}};
  for (const RunGroup& group : in.groups) {
    const SummaryCell cell = measured(group, data, metric);
    if (cell.values.empty()) continue;
    const double deviation = cell.deviation;
    Bar bar{group.title, "", "", group.color, cell.mean, cell.interval.low, cell.interval.high, cell.values};
    bar.text = number_text(bar.value, share) + (share ? " %" : "");
    if (bar.each.size() > 1) {
      spread = true;
      bar.low = bar.value - deviation;
      bar.high = bar.value + deviation;
      if (share) bar.low = std::max(0.0, bar.low), bar.high = std::min(1.0, bar.high);
      bar.text = str(number_text(bar.value, share), " \xc2\xb1 ", number_text(deviation, share), share ? " %" : "");
    }
    numbers.add({group.title, Cell::value(bar.value, share), Cell::value(deviation, share), Cell::value(bar.low, share),
                 Cell::value(bar.high, share), Cell::count(std::ssize(bar.each))});
    if (bar.each.size() == 1) bar.each.clear();
    chart.bars.push_back(std::move(bar));
  }
  if (chart.bars.empty()) {
    throw Error(ErrorKind::empty, data.empty() ? "no run has an evaluation" : str("no evaluation has ", metric));
  }
  StudyFigure figure;
  figure.name = str("bars-", file_word(metric));
  figure.title = metric_words(metric);
  figure.title[0] = figure.title[0] >= 'a' && figure.title[0] <= 'z' && metric.find('@') == std::string::npos
                        ? static_cast<char>(figure.title[0] - 'a' + 'A')
                        : figure.title[0];
  figure.note = str("On ", data_words(in, data), ". ",
                    spread ? "Error bars: one standard deviation over seeds, dots are seeds; of groups with one run, "
                             "the 95 % interval over problems."
                           : "Error bars: 95 % interval over problems.");
  figure.svg = svg_of(chart);
  figure.csv = numbers.csv();
  return {figure};
}

}  // namespace ucas
