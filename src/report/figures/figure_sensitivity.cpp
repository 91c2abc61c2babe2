// A result over one or two settings: a map where both were varied together, otherwise a curve for each.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/str.h"
#include "config/config_file.h"
#include "report/figures/figures.h"
#include "report/summary.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

double number(const std::string& text) {
  double value = kUnknown;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : kUnknown;
}

// The value of the paper's configuration of this method, as far as one is among the embedded ones.
double paper_value(const std::string& method, const std::string& key) {
  const std::vector<std::string> names = config_names();
  const std::string name = method + "-paper-7b";
  if (std::ranges::find(names, name) == names.end()) return kUnknown;
  const ConfigFile config = read_config(name);
  const auto value = std::ranges::find(config.values, key, &ConfigValue::key);
  return value == config.values.end() ? kUnknown : number(value->value);
}

std::string last_word(const std::string& key) { return key.substr(key.rfind('.') + 1); }

struct Varied {
  std::vector<std::string> axes;
  std::string method, metric;
  bool share = true;
  std::map<std::vector<double>, std::vector<double>> results;  // values of the axes -> one result a run
  std::vector<std::pair<std::string, double>> beside;          // groups that lack the settings
  double paper(size_t axis) const { return paper_value(method, axes[axis]); }
};

Varied collect(const FigureInput& in, const std::string& data) {
  Varied v{in.request.axes, "", in.request.metric, is_share(in.request.metric), {}, {}};
  for (const RunGroup& group : in.groups) {
    std::vector<double> place;
    for (const std::string& axis : v.axes) place.push_back(number(group.runs[0]->setting(axis)));
    const std::vector<double> values = measured(group, data, v.metric).values;
    if (values.empty()) continue;
    bool has = std::ranges::none_of(place, [](double x) { return std::isnan(x); });
    if (has && v.method.empty()) v.method = group.runs[0]->method;
    if (has && group.runs[0]->method == v.method) {
      auto& cell = v.results[place];
      cell.insert(cell.end(), values.begin(), values.end());
    } else {
      v.beside.emplace_back(group.title, mean_of(values));
    }
  }
  return v;
}

std::vector<double> distinct(const Varied& v, size_t axis) {
  std::set<double> values;
  for (const auto& [place, results] : v.results) values.insert(place[axis]);
  return {values.begin(), values.end()};
}

std::string csv(const Varied& v) {
  Table table{std::vector<Cell>(v.axes.begin(), v.axes.end())};
  for (const char* head : {"mean", "std", "runs"}) table.head.emplace_back(head);
  for (const auto& [place, results] : v.results) {
    std::vector<Cell> row(place.size());
    std::ranges::transform(place, row.begin(), [](double x) { return Cell::value(x, false); });
    row.insert(row.end(), {Cell::value(mean_of(results), v.share), Cell::value(deviation_of(results), v.share),
                           Cell::count(std::ssize(results))});
    table.add(std::move(row));
  }
  return table.csv();
}

std::string beside_words(const Varied& v) {
  std::string out;
  for (const auto& [title, value] : v.beside) {
    out += str(out.empty() ? " Beside: " : ", ", title, " ", number_text(value, v.share), v.share ? " %" : "");
  }
  return out.empty() ? out : out + ".";
}

StudyFigure map_figure(const Varied& v, const std::string& note) {
  std::vector<double> xs = distinct(v, 0), ys = distinct(v, 1);
  HeatMap map;
  map.title = str(metric_words(v.metric), " over ", v.axes[0], " and ", v.axes[1]);
  map.x_title = last_word(v.axes[0]);
  map.y_title = last_word(v.axes[1]);
  for (double x : xs) map.x.push_back(str(x));
  bool marked = false;
  for (double y : ys) {
    map.y.push_back(str(y));
    std::vector<HeatCell> row;
    for (double x : xs) {
      auto found = v.results.find({x, y});
      HeatCell cell;
      if (found != v.results.end()) {
        double deviation = deviation_of(found->second);
        cell.value = mean_of(found->second);
        cell.text = number_text(cell.value, v.share);
        if (!std::isnan(deviation)) cell.detail = "\xc2\xb1 " + number_text(deviation, v.share);
        cell.marked = x == v.paper(0) && y == v.paper(1);
        marked |= cell.marked;
      }
      row.push_back(cell);
    }
    map.cells.push_back(std::move(row));
  }
  StudyFigure out;
  out.name = str("sensitivity-", file_word(v.metric));
  out.title = str("Sensitivity: ", map.title);
  out.note = str(note, marked ? " Framed: the paper's setting." : "", beside_words(v));
  out.svg = svg_of(map);
  out.csv = csv(v);
  return out;
}

// Results along one axis, the other settings where most of the runs have them.
std::map<double, std::vector<double>> along(const Varied& v, size_t axis, std::string& held) {
  std::map<std::vector<double>, size_t> others;
  auto rest = [&](std::vector<double> place) {
    place.erase(place.begin() + static_cast<std::ptrdiff_t>(axis));
    return place;
  };
  for (const auto& [place, results] : v.results) ++others[rest(place)];
  auto most = std::ranges::max_element(others, [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  for (size_t a = 0, r = 0; a < v.axes.size(); ++a) {
    if (a != axis) held += str(held.empty() ? "" : ", ", last_word(v.axes[a]), " ", most[r++]);
  }
  std::map<double, std::vector<double>> line;
  for (const auto& [place, results] : v.results) {
    if (rest(place) == most) line[place[axis]] = results;
  }
  return line;
}

StudyFigure curve_figure(const Varied& v, size_t axis, const std::string& note) {
  std::string held, name = last_word(v.axes[axis]);
  std::map<double, std::vector<double>> line = along(v, axis, held);
  StudyFigure out;
  if (line.size() < 2) return out;
  Chart chart;
  chart.title = str(metric_words(v.metric), " against ", v.axes[axis]);
  chart.height = 280;
  chart.x.title = str(name, held.empty() ? "" : str(" (", held, ")"));
  chart.y.title = metric_words(v.metric);
  chart.y.percent = v.share;
  ChartSeries s;
  s.name = name;
  s.dots = true;
  s.band = false;
  s.radius = 3.4;
  double place = 0, last = static_cast<double>(line.size()) - 1;
  Table numbers{{v.axes[axis], "mean", "std", "runs"}};
  for (const auto& [value, results] : line) {  // settings stand at equal distances, whatever their size
    double mean = mean_of(results), deviation = deviation_of(results);
    bool of_paper = value == v.paper(axis);
    chart.x.marks.emplace_back(place, str(value, of_paper ? " (paper)" : ""));
    s.marks.push_back({place++, mean, mean - deviation, mean + deviation, ""});
    numbers.add({Cell::value(value, false), Cell::value(mean, v.share), Cell::value(deviation, v.share),
                 Cell::count(std::ssize(results))});
  }
  chart.x.low = -0.3;
  chart.x.high = last + 0.3;
  for (const auto& [title, value] : v.beside) chart.guides.push_back({-0.3, value, last + 0.3, value, title});
  chart.series.push_back(std::move(s));
  out.name = str("sensitivity-", file_word(v.metric), "-", file_word(name));
  out.title = str("Sensitivity: ", chart.title);
  out.note = note + beside_words(v);
  out.csv = numbers.csv();
  out.svg = svg_of(chart);
  return out;
}

}  // namespace

std::vector<StudyFigure> sensitivity_figures(const FigureInput& in) {
  const auto& axes = in.request.axes;
  if (axes.empty() || axes.size() > 2) {
    in.lacking = str("it is drawn over one or two settings, got ", axes.size());
    return {};
  }
  std::string data = asked_data(in);
  Varied v = collect(in, data);
  if (v.results.size() < 2) {
    in.lacking = str("fewer than two values of ", join(axes, " and "), " among runs with ", v.metric);
    return {};
  }
  size_t seeds = 0;
  for (const auto& [place, results] : v.results) seeds = std::max(seeds, results.size());
  std::string note = str("On ", data_words(in, data), ". ",
                         seeds > 1 ? str("Mean and standard deviation over up to ", seeds, " seeds.")
                                   : std::string("One run each: no spread is known."));
  size_t cells = 1;
  for (size_t a = 0; a < axes.size(); ++a) cells *= distinct(v, a).size();
  if (axes.size() == 2 && distinct(v, 0).size() > 1 && distinct(v, 1).size() > 1 && 5 * v.results.size() > 3 * cells) {
    return {map_figure(v, note)};
  }
  std::vector<StudyFigure> figures;
  for (size_t a = 0; a < axes.size(); ++a) {
    StudyFigure made = curve_figure(v, a, note);
    if (!made.svg.empty()) figures.push_back(std::move(made));
  }
  if (figures.empty()) in.lacking = "no setting has two values while the others stay the same";
  return figures;
}

}  // namespace ucas
