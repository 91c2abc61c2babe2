// Bars and maps of numbers (report/svg/svg_chart.h).
#include <algorithm>
#include <cmath>

#include "report/svg/svg_chart.h"

namespace ucas {

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
