#include "report/svg/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"

namespace ucas {

namespace {

constexpr double kSmallText = 11, kLabel = 11.5;
constexpr size_t kMostDirect = 12;  // more names than that go into a legend
constexpr double kLabelGap = 13;

// A rectangle of the canvas with two scales.
struct PlotFrame {
  double left = 0, top = 0, width = 0, height = 0;
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  bool x_doubling = false;
  double X(double value) const {
    const double low = x_doubling ? std::log2(x_low) : x_low, high = x_doubling ? std::log2(x_high) : x_high;
    const double at = x_doubling ? std::log2(value) : value;
    return left + (high > low ? (at - low) / (high - low) : 0.5) * width;
  }
  double Y(double value) const { return top + (y_high > y_low ? (y_high - value) / (y_high - y_low) : 0.5) * height; }
};

struct Extent {
  double low = kUnknown, high = kUnknown;
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::isnan(low) ? value : std::min(low, value);
    high = std::isnan(high) ? value : std::max(high, value);
  }
};

Extent wide_enough(Extent r, bool percent) {
  if (std::isnan(r.low)) return {0, 1};
  if (r.low == r.high) {
    double room = r.low == 0 ? (percent ? 0.01 : 1) : std::fabs(r.low) * 0.1;
    return {r.low - (r.low == 0 ? 0 : room), r.high + room};
  }
  return r;
}

// The axis begins at zero where that costs little, and shares end at 100 %.
Extent ends(Extent data, const ChartAxis& axis, int count) {
  data = wide_enough(data, axis.percent);
  double low = data.low, high = data.high;
  if (low >= 0 && low < 0.6 * high) low = 0;
  Ticks ticks = round_ticks(low, high, count);
  low = ticks.at.front();
  high = ticks.at.back();
  if (axis.percent && data.high <= 1 && high > 1) high = 1;
  if (axis.percent && data.low >= 0 && low < 0) low = 0;
  return {std::isnan(axis.low) ? low : axis.low, std::isnan(axis.high) ? high : axis.high};
}

std::vector<std::pair<double, std::string>> marks_of(const ChartAxis& axis, double low, double high, int count) {
  if (!axis.marks.empty()) return axis.marks;
  std::vector<std::pair<double, std::string>> marks;
  if (axis.doubling) {
    for (double v = std::exp2(std::ceil(std::log2(low) - 1e-9)); v <= high * (1 + 1e-9); v *= 2) {
      marks.emplace_back(v, tick_text(v, 1, axis.percent));
    }
    return marks;
  }
  Ticks ticks = round_ticks(low, high, count);
  for (double v : ticks.at) {
    double slack = 1e-9 * (high - low);
    if (v >= low - slack && v <= high + slack) marks.emplace_back(v, tick_text(v, ticks.step, axis.percent));
  }
  return marks;
}

struct Label {
  double wanted = 0, y = 0;
  std::string text;
  size_t color = kInk;
};

// Moves labels apart, as little as needed, within [top, bottom].
void spread(std::vector<Label>& labels, double top, double bottom) {
  std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.wanted < b.wanted; });
  double below = top;
  for (Label& label : labels) {
    label.y = std::max(label.wanted, below);
    below = label.y + kLabelGap;
  }
  double above = bottom;
  for (size_t i = labels.size(); i-- > 0;) {
    labels[i].y = std::min(labels[i].y, above);
    above = labels[i].y - kLabelGap;
  }
}

const ChartMark* last_known(const ChartSeries& s) {
  for (size_t i = s.marks.size(); i-- > 0;) {
    if (!std::isnan(s.marks[i].y)) return &s.marks[i];
  }
  return nullptr;
}

void draw_band(SvgCanvas& canvas, const PlotFrame& f, const ChartSeries& s) {
  std::vector<std::pair<double, double>> outline, back;
  for (const ChartMark& m : s.marks) {
    if (std::isnan(m.low) || std::isnan(m.high)) continue;
    outline.emplace_back(f.X(m.x), f.Y(m.high));
    back.emplace_back(f.X(m.x), f.Y(m.low));
  }
  if (outline.size() < 2) return;
  outline.insert(outline.end(), back.rbegin(), back.rend());
  canvas.polygon(outline, s.color, 0.15);
}

void draw_whiskers(SvgCanvas& canvas, const PlotFrame& f, const ChartSeries& s) {
  for (const ChartMark& m : s.marks) {
    if (std::isnan(m.low) || std::isnan(m.high)) continue;
    double x = f.X(m.x), low = f.Y(m.low), high = f.Y(m.high);
    canvas.line(x, low, x, high, {s.color, 1.2, "", 0.7});
    for (double y : {low, high}) canvas.line(x - 3, y, x + 3, y, {s.color, 1.2, "", 0.7});
  }
}

void draw_series(SvgCanvas& canvas, const PlotFrame& f, const ChartSeries& s) {
  std::vector<std::pair<double, double>> points;
  auto flush = [&] {
    if (s.line && points.size() > 1) canvas.polyline(points, {s.color, 2, s.dashed ? "6 4" : ""});
    if (s.line && points.size() == 1) canvas.circle(points[0].first, points[0].second, 2, s.color);
    points.clear();
  };
  for (const ChartMark& m : s.marks) {
    if (!std::isnan(m.y)) points.emplace_back(f.X(m.x), f.Y(m.y));
  }
  flush();
  if (!s.dots) return;
  for (const ChartMark& m : s.marks) {
    if (!std::isnan(m.y)) canvas.circle(f.X(m.x), f.Y(m.y), s.radius, s.color, s.opacity, m.about);
  }
}

void key_of(SvgCanvas& canvas, double x, double y, const ChartSeries& s) {
  if (s.line) {
    canvas.line(x, y, x + 16, y, {s.color, 2, s.dashed ? "6 4" : ""});
  } else {
    canvas.circle(x + 8, y, 3.4, s.color);
  }
}

// Names in columns below the plot; returns the height they took.
double draw_legend(SvgCanvas& canvas, const std::vector<const ChartSeries*>& series, double left, double top,
                   double width) {
  double widest = 0;
  for (const ChartSeries* s : series) widest = std::max(widest, text_width(s->name, kLabel) + 34);
  auto columns = static_cast<size_t>(std::max(1.0, std::floor(width / std::min(widest, width))));
  double column = width / static_cast<double>(columns);
  for (size_t i = 0; i < series.size(); ++i) {
    double x = left + static_cast<double>(i % columns) * column, y = top + static_cast<double>(i / columns) * 17;
    key_of(canvas, x, y + 5, *series[i]);
    canvas.text(x + 22, y + 9, fit_text(series[i]->name, kLabel, column - 28), {kLabel, kInk});
  }
  return static_cast<double>((series.size() + columns - 1) / columns) * 17;
}

void data_ends(const Chart& chart, PlotFrame& f) {
  Extent x, y;
  for (const ChartSeries& s : chart.series) {
    for (const ChartMark& m : s.marks) {
      if (std::isnan(m.y)) continue;
      x.take(m.x);
      for (double v : {m.y, m.low, m.high}) y.take(v);
    }
  }
  f.x_doubling = chart.x.doubling;
  for (const auto& [value, text] : chart.x.marks) x.take(value);
  x = wide_enough(x, chart.x.percent);
  f.x_low = std::isnan(chart.x.low) ? x.low : chart.x.low;
  f.x_high = std::isnan(chart.x.high) ? x.high : chart.x.high;
  Extent ends_of_y = ends(y, chart.y, 5);
  f.y_low = ends_of_y.low;
  f.y_high = ends_of_y.high;
}

// Room that the labels of y need to its left.
double label_room(const ChartAxis& y, double low, double high) {
  double widest = 0;
  for (const auto& [value, text] : marks_of(y, low, high, 5)) widest = std::max(widest, text_width(text, kSmallText));
  return widest + 10 + (y.title.empty() ? 0 : 18);
}

// Grid, ticks and titles around it.
void draw_axes(SvgCanvas& canvas, PlotFrame& f, const ChartAxis& x, const ChartAxis& y) {
  double bottom = f.top + f.height, right = f.left + f.width;
  for (const auto& [value, text] : marks_of(y, f.y_low, f.y_high, f.height < 90 ? 2 : 5)) {
    double at = f.Y(value);
    canvas.line(f.left, at, right, at, {kGrid, 1});
    canvas.text(f.left - 7, at + 3.8, text, {kSmallText, kSoft, TextAnchor::end});
  }
  canvas.line(f.left, bottom, right, bottom, {kLine, 1});
  if (!y.title.empty()) {
    double at = f.left - label_room(y, f.y_low, f.y_high) + 9;
    canvas.text(at, f.top + f.height / 2, y.title, {kLabel, kSoft, TextAnchor::middle, false, true});
  }
  int most = std::max(2, static_cast<int>(f.width / 70));
  double free_from = f.left - 30;
  for (const auto& [value, text] : marks_of(x, f.x_low, f.x_high, most)) {
    double at = f.X(value), half = text_width(text, kSmallText) / 2;
    canvas.line(at, bottom, at, bottom + 4, {kLine, 1});
    if (at - half < free_from) continue;  // would run into its neighbour
    canvas.text(at, bottom + 16, text, {kSmallText, kSoft, TextAnchor::middle});
    free_from = at + half + 5;
  }
  if (!x.title.empty()) {
    canvas.text(f.left + f.width / 2, bottom + 34, x.title, {kLabel, kSoft, TextAnchor::middle});
  }
}

}  // namespace

Ticks round_ticks(double low, double high, int count) {
  if (!(high > low)) return {{low}, 0};
  double span = high - low, size = std::max(std::fabs(low), std::fabs(high));
  if (!std::isfinite(span) || span < 1e-12 * size || span < 1e-300) return {{low, high}, span};
  double rough = span / std::max(1, count), power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (double m : {10.0, 5.0, 2.5, 2.0, 1.0}) {
    if (m * power >= rough * 0.999) step = m * power;
  }
  Ticks ticks{{}, step};
  auto first = static_cast<int64_t>(std::floor(low / step + 1e-9));
  auto last = static_cast<int64_t>(std::ceil(high / step - 1e-9));
  for (int64_t i = first; i <= last; ++i) ticks.at.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string tick_text(double value, double step, bool percent) {
  if (percent) value *= 100, step *= 100;
  if (value == 0) return percent ? "0 %" : "0";
  double size = std::max(std::fabs(value), std::fabs(step));
  std::string text;
  if (size >= 1e6 || (step > 0 && step < 1e-4)) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.1e", value);
    text = buffer;
  } else if (size >= 1000) {
    text = grouped(std::llround(value));
  } else {
    int digits = step > 0 ? std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9))) : 2;
    double shifted = step * std::pow(10.0, digits);
    if (std::fabs(shifted - std::round(shifted)) > 1e-6) ++digits;
    text = fixed(value, std::min(digits, 6));
  }
  if (text[0] == '-') text = "\xe2\x88\x92" + text.substr(1);  // as print has it
  return percent ? text + " %" : text;
}

std::string svg_of(const Chart& chart) {
  SvgCanvas canvas(chart.width, chart.height, chart.title);
  PlotFrame f;
  data_ends(chart, f);
  std::vector<const ChartSeries*> named;
  double widest = 0;
  bool lines = true;
  for (const ChartSeries& s : chart.series) {
    if (s.name.empty() || !last_known(s)) continue;
    named.push_back(&s);
    lines = lines && s.line;
    widest = std::max(widest, 1.08 * text_width(s.name, kLabel));  // they are bold
  }
  bool direct = lines && named.size() > 1 && named.size() <= kMostDirect && widest < chart.width * 0.34;
  f.left = 6 + label_room(chart.y, f.y_low, f.y_high);
  f.top = 12;
  f.width = chart.width - f.left - (direct ? widest + 18 : 16);
  f.height = chart.height - f.top - 44;
  if (chart.square) f.width = f.height = std::min(f.width, f.height);
  draw_axes(canvas, f, chart.x, chart.y);
  if (chart.square) canvas.line(f.X(f.x_low), f.Y(f.y_low), f.X(f.x_high), f.Y(f.y_high), {kFaint, 1, "3 3"});
  for (const ChartSeries& s : chart.series) s.band ? draw_band(canvas, f, s) : draw_whiskers(canvas, f, s);
  for (const ChartSeries& s : chart.series) draw_series(canvas, f, s);
  if (direct) {
    std::vector<Label> labels;
    for (const ChartSeries* s : named) labels.push_back({f.Y(last_known(*s)->y), 0, s->name, s->color});
    spread(labels, f.top + 2, f.top + f.height - 2);
    for (const Label& label : labels) {
      canvas.text(f.left + f.width + 9, label.y + 4, label.text, {kLabel, label.color, TextAnchor::start, true});
    }
  } else if (named.size() > 1 || (!named.empty() && !lines)) {
    double below = f.top + f.height + 48;
    canvas.grow(below + draw_legend(canvas, named, f.left, below, chart.width - f.left - 8) + 4);
  }
  return canvas.document();
}

namespace {

constexpr double kNameSize = 12, kTick = 11, kRow = 30;

double widest(const std::vector<std::string>& texts, double size) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text, size));
  return width;
}

// A bar from zero, or a dot, with its whiskers and seeds.
void draw_bar(SvgCanvas& canvas, const PlotFrame& f, const Bar& bar, double middle, bool point) {
  const double from = f.X(std::clamp(0.0, f.x_low, f.x_high)), end = f.X(bar.value);
  if (!point) {
    canvas.rectangle(std::min(from, end), middle - 8, std::fabs(end - from), 16, bar.color, 0.32, 2);
    canvas.line(end, middle - 8, end, middle + 8, {bar.color, 2});
  }
  if (!std::isnan(bar.low) && !std::isnan(bar.high)) {
    canvas.line(f.X(bar.low), middle, f.X(bar.high), middle, {bar.color, 1.4});
    for (double v : {bar.low, bar.high}) canvas.line(f.X(v), middle - 4, f.X(v), middle + 4, {bar.color, 1.4});
  }
  for (double v : bar.each) canvas.circle(f.X(v), middle, 2.4, bar.color, point ? 0.45 : 0.85);
  if (point && bar.hollow) canvas.circle(end, middle, 4.6, kPaper);
  if (point) canvas.circle(end, middle, 4.6, bar.color, 1, "", bar.hollow);
}

}  // namespace

std::string svg_of(const BarChart& chart) {
  double low = 0, high = 0;
  std::vector<std::string> names, texts, details;
  for (const Bar& bar : chart.bars) {
    names.push_back(bar.name);
    texts.push_back(bar.text);
    details.push_back(bar.detail);
    for (double v : {bar.value, bar.low, bar.high}) {
      if (std::isnan(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    for (double v : bar.each) high = std::max(high, v);
  }
  if (high <= low) high = low + 1;
  const double row = chart.points ? 26 : kRow, detail_room = widest(details, kTick) + (chart.points ? 10 : 0);
  double name_room = std::min(widest(names, kNameSize) + 14, chart.width * 0.36);
  PlotFrame f;
  f.left = name_room;
  f.top = 8;
  f.width = chart.width - name_room - widest(texts, kNameSize) * (chart.points ? 1.08 : 1) - 22 - detail_room;
  f.height = row * static_cast<double>(chart.bars.size());
  Ticks ticks = round_ticks(std::isnan(chart.x.low) ? low : chart.x.low, std::isnan(chart.x.high) ? high : chart.x.high,
                            std::max(2, static_cast<int>(f.width / 70)));
  f.x_low = std::isnan(chart.x.low) ? ticks.at.front() : chart.x.low;
  f.x_high = std::isnan(chart.x.high) ? ticks.at.back() : chart.x.high;
  if (chart.x.percent && high <= 1) f.x_high = std::min(f.x_high, 1.0);
  double bottom = f.top + f.height;
  SvgCanvas canvas(chart.width, bottom + (chart.x.title.empty() ? 22 : 40), chart.title);
  for (double v : ticks.at) {
    if (v > f.x_high * (1 + 1e-9)) continue;
    const SvgCanvas::Stroke zero = {chart.points ? size_t{kFaint} : size_t{kLine}, 1}, other = {kGrid, 1};
    canvas.line(f.X(v), f.top, f.X(v), bottom, v == 0 ? zero : other);
    canvas.text(f.X(v), bottom + 14, tick_text(v, ticks.step, chart.x.percent), {kTick, kSoft, TextAnchor::middle});
  }
  if (!chart.x.title.empty()) {
    canvas.text(f.left + f.width / 2, bottom + 32, chart.x.title, {kTick + 0.5, kSoft, TextAnchor::middle});
  }
  for (size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double middle = f.top + row * (static_cast<double>(i) + 0.5);
    canvas.text(f.left - 10, middle + 4, fit_text(bar.name, kNameSize, name_room - 14),
                {kNameSize, kInk, TextAnchor::end});
    draw_bar(canvas, f, bar, middle, chart.points);
    canvas.text(chart.width - 4 - detail_room, middle + 4, bar.text, {kNameSize, kInk, TextAnchor::end, true});
    if (!bar.detail.empty()) {
      canvas.text(chart.width - 4, middle + 4, bar.detail, {kTick, kSoft, TextAnchor::end});
    }
  }
  return canvas.document();
}

}  // namespace ucas
