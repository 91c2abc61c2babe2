// Good plain charts as SVG (report/svg/svg_canvas.h): curves with bands, dots and whiskers; scatters; bars with error
// bars. Round ticks, labels at the curves where they fit, a legend where they do not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/svg/svg_canvas.h"
#include "results/stats/spread.h"

namespace ucas {

struct ChartAxis {
  std::string title;
  bool percent = false;                               // values are shares
  bool doubling = false;                              // on a doubling scale; values are positive
  double low = kUnknown, high = kUnknown;             // unknown: from the data, rounded outwards to a tick
  std::vector<std::pair<double, std::string>> marks;  // instead of round ticks
};

struct ChartMark {
  double x = 0, y = 0, low = kUnknown, high = kUnknown;
  std::string about;  // shown where the pointer rests on it
};

struct ChartSeries {
  std::string name;
  size_t color = 1;
  bool line = true, dots = false, dashed = false;
  bool band = true;  // bounds as a band, else as whiskers
  double radius = 2.6, opacity = 1;
  std::vector<ChartMark> marks;
};

struct Chart {
  std::string title;  // spoken, not shown
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  double width = 560, height = 320;
  bool square = false;  // both axes of the same length, with the line of equal values
};

// Round numbers covering [low, high], about `count` of them, and the distance between them.
struct Ticks {
  std::vector<double> at;
  double step = 0;
};
Ticks round_ticks(double low, double high, int count);
std::string tick_text(double value, double step, bool percent);

std::string svg_of(const Chart& chart);

struct Bar {
  std::string name, text, detail;  // text: the number, at its right; detail: fainter, next to it
  size_t color = 1;
  double value = 0, low = kUnknown, high = kUnknown;
  std::vector<double> each;  // seeds, as dots
  bool hollow = false;       // of points: a ring
};
struct BarChart {
  std::string title;
  ChartAxis x;
  bool points = false;  // a dot at the value, and a line at zero: a forest plot
  std::vector<Bar> bars;
  double width = 560;
};
std::string svg_of(const BarChart& chart);

}  // namespace ucas
