// One step under every method: a row a method, a panel a quantity.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/str.h"
#include "report/methods_figure.h"
#include "report/study_figures.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

constexpr double kRowHeight = 19, kPanelWidth = 118, kPanelGap = 24, kTop = 40, kFontSize = 11.5;

double part_of(int64_t part, int64_t whole) {
  return whole == 0 ? kUnknown : static_cast<double>(part) / static_cast<double>(whole);
}

std::string row_label(const AgainstDapo& row) { return str(row.name, ", ", row.variant); }

struct MethodsPanel {
  const char *title, *second;  // in two lines
  bool percent;
  std::function<double(const AgainstDapo&)> value;
};

std::vector<MethodsPanel> methods_panels() {
  return {{"correlation", "with DAPO", false, [](const AgainstDapo& row) { return row.correlation; }},
          {"mean |A|", "over DAPO's", false, [](const AgainstDapo& row) { return row.size; }},
          {"net push", "mean A", false, [](const AgainstDapo& row) { return row.net; }},
          {"tokens whose", "sign flips", true, [](const AgainstDapo& row) { return part_of(row.turned, row.tokens); }},
          {"rare right", "lowered", true, [](const AgainstDapo& row) { return part_of(row.rare_lowered, row.rare); }}};
}

// DAPO gray; a placebo is a ring.
void draw_methods_panel(SvgCanvas& canvas, const MethodsPanel& panel, const MethodsTable& table, double left) {
  const double bottom = kTop + kRowHeight * static_cast<double>(table.rows.size());
  double low = 0, high = 0;
  for (const AgainstDapo& row : table.rows) {
    const double value = panel.value(row);
    if (std::isnan(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (high <= low) high = low + (panel.percent ? 0.01 : 1);
  const Ticks ticks = round_ticks(low, high, 2);
  PlotFrame frame{left, kTop, kPanelWidth, bottom - kTop, ticks.at.front(), ticks.at.back(), 0, 1, false};
  const double middle = left + kPanelWidth / 2;
  canvas.text(middle, 14, panel.title, {kFontSize, kInk, TextAnchor::middle, true});
  canvas.text(middle, 28, panel.second, {kFontSize, kInk, TextAnchor::middle, true});
  for (double at : ticks.at) {
    canvas.line(frame.X(at), kTop, frame.X(at), bottom, {at == 0 ? size_t{kLine} : size_t{kGrid}, 1});
    canvas.text(frame.X(at), bottom + 14, tick_text(at, ticks.step, panel.percent), {10.5, kSoft, TextAnchor::middle});
  }
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const AgainstDapo& row = table.rows[i];
    const double value = panel.value(row), y = kTop + kRowHeight * (static_cast<double>(i) + 0.5);
    if (std::isnan(value)) continue;
    const bool placebo = row.variant.starts_with("placebo");
    const size_t color = i == 0 ? 0 : 1;
    canvas.line(frame.X(std::clamp(0.0, frame.x_low, frame.x_high)), y, frame.X(value), y, {color, 1, "", 0.5});
    canvas.circle(frame.X(value), y, 3.6, color, 1, str(row_label(row), ": ", value), placebo);
  }
}

std::string methods_csv(const MethodsTable& table) {
  Table out{{"method", "variant", "correlation", "size", "net", "tokens", "sign_turned", "silenced", "woken",
             "rare_right", "rare_right_lowered", "other_right", "other_right_lowered"}};
  for (const AgainstDapo& row : table.rows) {
    out.add({row.name, row.variant, Cell::value(row.correlation, false), Cell::value(row.size, false),
             Cell::value(row.net, false), Cell::count(row.tokens), Cell::count(row.turned), Cell::count(row.silenced),
             Cell::count(row.woken), Cell::count(row.rare), Cell::count(row.rare_lowered), Cell::count(row.other),
             Cell::count(row.other_lowered)});
  }
  return out.csv();
}

}  // namespace

Table methods_rows(const MethodsTable& table) {
  Table out{{"method", "", "correlation", "mean |A|", "net push", "sign flip", "zeroed", "rare right lowered",
             "other right lowered"},
            {},
            "llr"};
  for (const AgainstDapo& row : table.rows) {
    out.add({row.name, row.variant, Cell::decimal(row.correlation, 3),
             Cell::decimal(row.size, 3).with(&Cell::after, " x"), Cell::decimal(row.net, 4, true),
             share_text(row.turned, row.tokens), share_text(row.silenced, row.tokens),
             share_text(row.rare_lowered, row.rare), share_text(row.other_lowered, row.other)});
  }
  return out;
}

std::string methods_extent(const MethodsTable& table) {
  return str(table.steps, table.steps == 1 ? " saved step, " : " saved steps, ", grouped(table.groups), " prompts, ",
             grouped(table.responses), " responses, ", grouped(table.rows.front().tokens), " tokens");
}

StudyFigure methods_figure(const MethodsTable& table) {
  StudyFigure figure;
  figure.name = "methods";
  figure.title = str(table.rows.size(), " ways to weigh a token, same prompts, same bits");
  double names = 0;
  for (const AgainstDapo& row : table.rows) names = std::max(names, text_width(row_label(row), kFontSize));
  const std::vector<MethodsPanel> all = methods_panels();
  const double left = names + 16, rows = kRowHeight * static_cast<double>(table.rows.size());
  SvgCanvas canvas(left + (kPanelWidth + kPanelGap) * static_cast<double>(all.size()), kTop + rows + 24, figure.title);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    canvas.text(names + 4, kTop + kRowHeight * (static_cast<double>(i) + 0.5) + 4, row_label(table.rows[i]),
                {kFontSize, kInk, TextAnchor::end});
  }
  for (size_t p = 0; p < all.size(); ++p) {
    draw_methods_panel(canvas, all[p], table, left + (kPanelWidth + kPanelGap) * static_cast<double>(p));
  }
  figure.svg = canvas.document();
  figure.csv = methods_csv(table);
  figure.note =
      str("What each method asks of a token at the first update, compared with DAPO, over ", methods_extent(table),
          ". Rare right: right responses where at most ", percent(table.rare, 0), " of the prompt's are (",
          grouped(table.rows.front().rare), " of ", grouped(table.rows.front().rare + table.rows.front().other),
          "). Lowered: below DAPO's mean over the response. Gray: DAPO; rings: placebos.");
  return figure;
}

std::string methods_page(const MethodsTable& table, const std::string& figure, const std::string& command) {
  const StudyFigure drawn = methods_figure(table);
  std::string text = str("# ", drawn.title, "\n\nMade by `", command, "`.\n\n![", drawn.title, "](", figure,
                         ".svg)\n\n", drawn.note, "\n\n", methods_rows(table).markdown());
  if (table.left_out.empty()) return text;
  text += "\nLeft out, as the steps do not hold what they need:\n\n";
  for (const std::string& line : table.left_out) text += str("- ", markdown_text(line), "\n");
  return text;
}

}  // namespace ucas
