#include "report/tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/str.h"
#include "report/escape.h"
#include "report/svg_canvas.h"

namespace ucas {

namespace {

std::string percent_of_width(double share) { return fixed(100 * std::clamp(share, 0.0, 1.0), 2) + "%"; }

// "99.6 <small>+-0.5</small>"
std::string figure_html(const SummaryCell& cell, bool share) {
  if (cell.values.empty()) return "<span class=\"quiet\">&#8211;</span>";
  std::string out = str("<b>", number_text(cell.mean, share), "</b>");
  if (!std::isnan(cell.deviation)) out += str("<small> &#177;&#8201;", number_text(cell.deviation, share), "</small>");
  return out;
}

std::string bounds_text(const Figure& interval, bool share) {
  if (!interval.bounded()) return "";
  return str(number_text(interval.low, share), "&#8211;", number_text(interval.high, share));
}

std::string cell_html(const SummaryCell& cell, const SummaryColumn& column) {
  std::string out = figure_html(cell, column.share);
  std::string bounds = column.main ? bounds_text(cell.interval, true) : "";
  if (!bounds.empty()) out += str("<span class=\"bounds\">", bounds, "</span>");
  return out;
}

std::string column_title(const SummaryColumn& column) {
  return str(html_text(column.title), column.share              ? " <small>%</small>"
                                      : column.key == "length"  ? " <small>tokens</small>"
                                      : column.key == "entropy" ? " <small>nats</small>"
                                                                : "");
}

std::string column_head(const SummaryColumn& column, const char* scope) {
  return str("<th scope=\"", scope, "\" title=\"", html_text(column.help), "\">", column_title(column), "</th>");
}

// Values of each seed below their group.
std::string seed_rows(const ResultTable& summary, const SummaryRow& row) {
  std::string out;
  for (const RunRecord* run : row.group->runs) {
    const EvalRecord* evaluation = final_evaluation(*run, summary.data);
    if (!evaluation) continue;
    out += str("<tr class=\"seed\"><th scope=\"row\">", run->seed >= 0 ? str("seed ", run->seed) : html_text(run->name),
               "</th>");
    for (size_t c = 0; c < row.cells.size(); ++c) {
      size_t place = 0, found = SIZE_MAX;  // the n-th run that has the number
      for (const RunRecord* other : row.group->runs) {
        const EvalRecord* theirs = final_evaluation(*other, summary.data);
        if (!theirs) continue;
        if (other == run) found = place;
        ++place;
      }
      const SummaryCell& cell = row.cells[c];
      bool share = summary.columns[c].share;
      out += "<td>";
      if (cell.values.size() == place && found < place) {
        out += str(number_text(cell.values[found], share));
        std::string bounds = summary.columns[c].main ? bounds_text(cell.each[found], true) : "";
        if (!bounds.empty()) out += str("<span class=\"bounds\">", bounds, "</span>");
      }
      out += "</td>";
    }
    out += "</tr>";
  }
  return out;
}

constexpr std::array<std::pair<const char*, const char*>, 11> kPhases = {{{"gen", "sampling"},
                                                                          {"reward", "grading"},
                                                                          {"old_log_prob", "old log-probs"},
                                                                          {"ref", "reference"},
                                                                          {"values", "values"},
                                                                          {"adv", "advantages"},
                                                                          {"update_critic", "critic update"},
                                                                          {"update_actor", "policy update"},
                                                                          {"testing", "validation"},
                                                                          {"save_checkpoint", "checkpoints"},
                                                                          {"other", "other"}}};

std::string short_seconds(double seconds) { return seconds < 10 ? fixed(seconds, 2) + " s" : human_seconds(seconds); }

// Seconds a phase per step, averaged over all steps and runs of the group; index 10 is what step holds beyond them.
std::array<double, 11> phase_seconds(const RunGroup& group, int64_t& steps, double& total) {
  std::array<double, 11> seconds{};
  steps = 0;
  total = 0;
  for (const RunRecord* run : group.runs) {
    const auto* whole = run->steps.find("timing_s/step");
    for (size_t i = 0; whole && i < whole->size(); ++i) {
      if (std::isnan((*whole)[i])) continue;
      total += (*whole)[i];
      if (run->steps.step[i] < 1) continue;  // the validation before the first step
      ++steps;
      double named = 0;
      for (size_t p = 0; p + 1 < kPhases.size(); ++p) {
        const auto* values = run->steps.find(str("timing_s/", kPhases[p].first));
        if (!values || std::isnan((*values)[i])) continue;
        seconds[p] += (*values)[i];
        named += (*values)[i];
      }
      seconds.back() += std::max(0.0, (*whole)[i] - named);
    }
  }
  for (double& value : seconds) value /= std::max<double>(1, static_cast<double>(steps));
  return seconds;
}

}  // namespace

std::string color_key(const RunGroup& group) { return str("<span class=\"key g", group.color, "\"></span>"); }

std::string summary_picture_html(const ResultTable& summary) {
  std::string out;
  double who = 96;  // room for the names, in pixels
  for (const SummaryRow& row : summary.rows) who = std::max(who, text_width(row.group->title, 14) + 4);
  for (size_t c = 0; c < summary.columns.size(); ++c) {
    const SummaryColumn& column = summary.columns[c];
    if (column.key != "greedy" && !column.key.starts_with("mean@")) continue;
    out += str("<div class=\"dots\" style=\"--who:", fixed(std::min(who, 190.0), 0), "px\"><h3>",
               column.key == "greedy" ? "Greedy accuracy" : "Sampled accuracy", " <small>",
               column.key == "greedy" ? "pass@1" : column.title, "</small></h3>");
    for (const SummaryRow& row : summary.rows) {
      const SummaryCell& cell = row.cells[c];
      if (cell.values.empty()) continue;
      out += str("<div class=\"dot g", row.group->color, "\"><span class=\"who\" title=\"", html_text(row.group->title),
                 "\">", html_text(row.group->title), "</span><span class=\"track\">");
      if (cell.interval.bounded()) {
        out += str("<i class=\"whisker\" style=\"left:", percent_of_width(cell.interval.low),
                   ";width:", percent_of_width(cell.interval.high - cell.interval.low), "\"></i>");
      }
      for (double value : cell.values) {
        if (cell.values.size() > 1) out += str("<i class=\"one\" style=\"left:", percent_of_width(value), "\"></i>");
      }
      out += str("<i class=\"mean\" style=\"left:", percent_of_width(cell.mean),
                 "\"></i></span><span class=\"figure\"><b>", number_text(cell.mean, true), "</b> %");
      if (!std::isnan(cell.deviation))
        out += str("<small>&#177;&#8201;", number_text(cell.deviation, true), "</small>");
      out += "</span></div>";
    }
    out +=
        "<div class=\"scale\" aria-hidden=\"true\"><span></span><span "
        "class=\"ticks\"><i>0</i><i>25</i><i>50</i><i>75</i>"
        "<i>100 %</i></span><span></span></div></div>";
  }
  return out;
}

std::string summary_table_html(const ResultTable& summary) {
  bool seeds = false;
  for (const SummaryRow& row : summary.rows) seeds |= row.group->runs.size() > 1;
  std::string wide = "<div class=\"scroll wide-only\"><table class=\"summary\"><thead><tr><td></td>";
  for (const SummaryColumn& column : summary.columns) wide += column_head(column, "col");
  wide += "</tr></thead>";
  for (const SummaryRow& row : summary.rows) {
    wide += str("<tbody><tr><th scope=\"row\">", color_key(*row.group), html_text(row.group->title),
                "<span class=\"bounds\">", row.group->seeds(), "</span></th>");
    for (size_t c = 0; c < row.cells.size(); ++c)
      wide += str("<td>", cell_html(row.cells[c], summary.columns[c]), "</td>");
    wide += "</tr>";
    if (row.group->runs.size() > 1) wide += seed_rows(summary, row);
    wide += "</tbody>";
  }
  wide += "</table></div>";
  // The same turned round: a phone has room for a few models, not for nine numbers.
  std::string narrow = "<div class=\"scroll narrow-only\"><table class=\"summary\"><thead><tr><td></td>";
  for (const SummaryRow& row : summary.rows) {
    narrow += str("<th scope=\"col\">", color_key(*row.group), html_text(row.group->title), "</th>");
  }
  narrow += "</tr></thead><tbody>";
  for (size_t c = 0; c < summary.columns.size(); ++c) {
    narrow += str("<tr>", column_head(summary.columns[c], "row"));
    for (const SummaryRow& row : summary.rows)
      narrow += str("<td>", cell_html(row.cells[c], summary.columns[c]), "</td>");
    narrow += "</tr>";
  }
  narrow += "</tbody></table></div>";
  std::string switch_html =
      seeds ? "<label class=\"switch wide-only\"><input type=\"checkbox\" id=\"seeds\"> show each seed</label>" : "";
  return switch_html + wide + narrow;
}

std::string time_html(const std::vector<RunGroup>& groups) {
  std::array<bool, 11> used{};
  struct Bar {
    size_t group;
    std::array<double, 11> seconds;
    int64_t steps;
    double total;     // of all steps and runs
    double step = 0;  // mean of one
  };
  std::vector<Bar> bars;
  double longest = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    Bar bar{g, {}, 0, 0, 0};
    bar.seconds = phase_seconds(groups[g], bar.steps, bar.total);
    if (bar.steps == 0) continue;
    double& sum = bar.step;
    for (size_t p = 0; p < bar.seconds.size(); ++p) {
      used[p] = used[p] || bar.seconds[p] > 0;
      sum += bar.seconds[p];
    }
    longest = std::max(longest, sum);
    bars.push_back(bar);
  }
  if (bars.empty() || longest <= 0) return "";
  std::string out = "<div class=\"bars\">";
  for (const Bar& bar : bars) {
    out += str("<div class=\"bar\"><span class=\"who\">", color_key(groups[bar.group]),
               html_text(groups[bar.group].title), "</span><span class=\"stack\">");
    for (size_t p = 0; p < kPhases.size(); ++p) {
      if (bar.seconds[p] <= 0) continue;
      out += str("<i class=\"p", p, "\" style=\"width:", percent_of_width(bar.seconds[p] / longest), "\" title=\"",
                 kPhases[p].second, " ", short_seconds(bar.seconds[p]), "\"></i>");
    }
    out += str("</span><span class=\"figure\"><b>", short_seconds(bar.step), "</b> a step</span></div>");
  }
  out += "</div><div class=\"scroll\"><table class=\"plain\"><thead><tr><th scope=\"col\">seconds a step</th>";
  for (const Bar& bar : bars) out += str("<th scope=\"col\">", html_text(groups[bar.group].title), "</th>");
  out += "</tr></thead><tbody>";
  auto row = [&](const std::string& head, auto&& cell) {
    out += str("<tr><th scope=\"row\">", head, "</th>");
    for (const Bar& bar : bars) out += str("<td>", cell(bar), "</td>");
    out += "</tr>";
  };
  for (size_t p = 0; p < kPhases.size(); ++p) {
    if (!used[p]) continue;
    row(str("<span class=\"key p", p, "\"></span>", kPhases[p].second),
        [&](const Bar& bar) { return fixed(bar.seconds[p], 3); });
  }
  row("<b>step</b>", [](const Bar& bar) { return str("<b>", fixed(bar.step, 3), "</b>"); });
  row("all steps", [&](const Bar& bar) {
    size_t runs = groups[bar.group].runs.size();
    return human_seconds(bar.total) + (runs > 1 ? str(" in ", runs, " runs") : "");
  });
  return out + "</tbody></table></div>";
}

std::string settings_html(const std::vector<RunGroup>& groups) {
  std::vector<size_t> with;
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (size_t g = 0; g < groups.size(); ++g) {
    bool any = false;
    for (const RunRecord* run : groups[g].runs) {
      for (const auto& [key, value] : run->config) {
        any = true;
        if (seen.insert(key).second) keys.push_back(key);
      }
    }
    if (any) with.push_back(g);
  }
  if (with.empty()) return "";
  auto value_of = [&](size_t g, const std::string& key) {
    std::vector<std::string> values;
    for (const RunRecord* run : groups[g].runs) {
      std::string value = run->setting(key);
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    return join(values, " | ");
  };
  std::string head = "<thead><tr><th scope=\"col\">setting</th>";
  for (size_t g : with) head += str("<th scope=\"col\">", color_key(groups[g]), html_text(groups[g].title), "</th>");
  head += "</tr></thead>";
  std::string differing, all;
  size_t differences = 0;
  for (const std::string& key : keys) {
    std::set<std::string> values;
    std::string cells;
    for (size_t g : with) {
      std::string value = value_of(g, key);
      values.insert(value);
      cells += str("<td>", value.empty() ? "<span class=\"quiet\">&#8211;</span>" : model_text(value, 400), "</td>");
    }
    bool differs = values.size() > 1;
    std::string row = str("<tr", differs ? " class=\"differs\"" : "", "><th scope=\"row\"><code>", html_text(key),
                          "</code></th>", cells, "</tr>");
    all += row;
    if (differs) {
      differing += row;
      ++differences;
    }
  }
  std::string out;
  if (with.size() > 1) {
    out += differences == 0 ? "<p>All settings are the same.</p>"
                            : str("<div class=\"scroll\"><table class=\"settings\"><caption>",
                                  differences == 1 ? "One setting differs" : str(differences, " settings differ"),
                                  "</caption>", head, "<tbody>", differing, "</tbody></table></div>");
  }
  out += str("<details class=\"fold\"><summary>All ", keys.size(),
             " settings</summary><div class=\"scroll\"><table class=\"settings\">", head, "<tbody>", all,
             "</tbody></table></div></details>");
  return out;
}

}  // namespace ucas
