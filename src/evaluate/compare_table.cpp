#include "evaluate/compare_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/str.h"
#include "base/table_text.h"

namespace ucas {

namespace {

std::string points(double share) {
  const std::string text = fixed(100 * std::fabs(share), 1);
  return text == "0.0" ? text : str(share < 0 ? "-" : "+", text);
}

std::string p_text(double p) { return std::isnan(p) ? "-" : p < 0.001 ? "< 0.001" : fixed(p, 3); }

std::string value_text(const ComparedCell& cell, const char* plus_minus) {
  if (std::isnan(cell.value.value)) return "-";
  std::string text = fixed(100 * cell.value.value, 1);
  if (!std::isnan(cell.deviation)) text += str(plus_minus, fixed(100 * cell.deviation, 1));
  return text;
}

std::string bounds_text(const Figure& f, bool sign) {
  if (!f.bounded()) return "";
  return sign ? str("[", points(f.low), ", ", points(f.high), "]")
              : str("[", fixed(100 * f.low, 1), ", ", fixed(100 * f.high, 1), "]");
}

std::vector<PublishedLine> lines_beside(const Comparison& c, const ComparedMetric& metric,
                                        std::span<const PublishedTable> tables) {
  std::vector<std::string> sets;
  for (const ComparedSet& set : c.sets) sets.push_back(set.name);
  std::vector<PublishedLine> lines;
  for (const PublishedTable& table : tables) {
    for (PublishedLine& line : published_lines(table, metric.key, sets)) lines.push_back(std::move(line));
  }
  return lines;
}

// What is doubtful in the lines beside any of the metrics, each said once.
std::string doubts_text(const Comparison& c, const PublishedTable& table) {
  std::string out;
  std::set<std::string> said;
  for (const ComparedMetric& metric : c.metrics) {
    for (const PublishedLine& line : lines_beside(c, metric, {&table, 1})) {
      if (line.doubts.empty()) continue;
      const std::string text =
          str("  ", printable(line.name, 60), ": ", printable(join(line.doubts, "; "), 1000), "\n");
      if (said.insert(text).second) out += text;
    }
  }
  return out.empty() ? out : "  Doubtful (? in the table):\n" + out;
}

using Lines = std::vector<std::vector<std::string>>;

std::string layout(const Lines& lines, const char* indent) {
  std::vector<size_t> width;
  for (const auto& line : lines) {
    width.resize(std::max(width.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text = indent;
    for (size_t i = 0; i < line.size(); ++i) {
      text += i == 0 ? pad_right(line[i], width[i]) : "  " + pad_left(line[i], width[i]);
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string metric_text(const Comparison& c, const ComparedMetric& metric, std::span<const PublishedTable> published) {
  Lines lines(2);
  lines[0].push_back(metric.title + " %");
  lines[1].push_back("  problems");
  for (const ComparedSet& set : c.sets) {
    lines[0].push_back(printable(set.title, 24));
    lines[1].push_back(grouped(set.problems));
  }
  for (size_t g = 0; g < c.groups.size(); ++g) {
    std::vector<std::string> values = {printable(c.groups[g], 40)}, bounds = {""};
    for (const ComparedCell& cell : metric.cell[g]) {
      values.push_back(value_text(cell, " +- "));
      bounds.push_back(bounds_text(cell.value, false));
    }
    lines.push_back(values);
    lines.push_back(bounds);
  }
  for (const PublishedLine& published_line : lines_beside(c, metric, published)) {
    std::vector<std::string> line = {printable(published_line.name, 60)};
    for (const std::string& cell : published_line.cells) line.push_back(cell.empty() ? "-" : cell);
    lines.push_back(std::move(line));
  }
  return layout(lines, "");
}

std::string verdict_text(const Contrast& contrast, const CompareOptions& options) {
  if (contrast.told_apart) return contrast.change.value > 0 ? "higher" : "lower";
  const bool alone = contrast.change.bounded() && (contrast.change.low > 0 || contrast.change.high < 0);
  return alone && contrast.p <= 1 - options.level ? "cannot be told apart after the correction"
                                                  : "cannot be told apart";
}

// The first column's test, and where others have another one.
std::string basis_text(const Comparison& c, const std::vector<Contrast>& contrasts) {
  std::string first, others;
  for (size_t s = 0; s < contrasts.size(); ++s) {
    const std::string& basis = contrasts[s].basis;
    if (first.empty()) first = basis;
    if (!basis.empty() && basis != first) others += str("; ", printable(c.sets[s].title, 24), ": ", basis);
  }
  return first + others;
}

std::string contrasts_text(const Comparison& c, const ComparedMetric& metric) {
  std::string out;
  for (size_t g = 1; g < c.groups.size(); ++g) {
    Lines lines;
    for (size_t s = 0; s < c.sets.size(); ++s) {
      const Contrast& contrast = metric.contrast[g][s];
      if (std::isnan(contrast.change.value)) continue;
      std::string changed;
      if (contrast.gained >= 0) changed = str("+", contrast.gained, " -", contrast.lost);
      lines.push_back({printable(c.sets[s].title, 24), points(contrast.change.value),
                       bounds_text(contrast.change, true), changed, "p " + p_text(contrast.p),
                       "corrected " + p_text(contrast.p_holm), verdict_text(contrast, c.options)});
    }
    if (lines.empty()) continue;
    size_t widest = 0;
    for (const auto& line : lines) widest = std::max(widest, line.back().size());
    for (auto& line : lines) line.back() = pad_right(line.back(), widest);
    out += str("  ", printable(c.groups[g], 40), " less ", printable(c.groups[0], 40), ", points:\n",
               layout(lines, "    "));
    out += str("    p: ", basis_text(c, metric.contrast[g]), "\n");
  }
  if (!out.empty()) {
    out += str("  Corrected by Holm over the ", metric.comparisons,
               metric.comparisons == 1 ? " comparison" : " comparisons", " of ", metric.title, ", level ",
               percent(1 - c.options.level, 0), ".\n");
  }
  return out;
}

OrderedJson number(double value) { return std::isnan(value) ? OrderedJson(nullptr) : OrderedJson(value); }

OrderedJson json_of(const Figure& f) {
  return {{"value", number(f.value)}, {"low", number(f.low)}, {"high", number(f.high)}};
}

OrderedJson json_of(const Contrast& contrast) {
  OrderedJson out = json_of(contrast.change);
  out["p"] = number(contrast.p);
  out["p_holm"] = number(contrast.p_holm);
  if (contrast.gained >= 0) {
    out["gained"] = contrast.gained;
    out["lost"] = contrast.lost;
  }
  out["told_apart"] = contrast.told_apart;
  out["basis"] = contrast.basis;
  return out;
}

}  // namespace

std::string comparison_text(const Comparison& c, std::span<const PublishedTable> published) {
  std::string out;
  for (const std::string& warning : c.warnings) out += str("warning: ", warning, "\n");
  for (const std::string& line : c.differing) out += str("  differs: ", line, "\n");
  for (const ComparedMetric& metric : c.metrics) {
    out += str(out.empty() ? "" : "\n", metric_text(c, metric, published));
    const std::string contrasts = contrasts_text(c, metric);
    if (!contrasts.empty()) out += "\n" + contrasts;
  }
  for (const PublishedTable& table : published) {
    out += str("\npublished: ", printable(table.title, 200), ". Source: ", printable(table.source, 400),
               ". Not measured here, in no test and no average.\n");
    if (!table.note.empty()) out += str("  ", printable(table.note, 1000), "\n");
    const bool beside = std::any_of(c.metrics.begin(), c.metrics.end(), [&](const ComparedMetric& metric) {
      return !lines_beside(c, metric, {&table, 1}).empty();
    });
    out += doubts_text(c, table);
    if (!beside) out += "  It has no figures of the sets compared here.\n";
  }
  return out;
}

std::string comparison_text(std::span<const EvalResult> results) {
  if (results.size() < 2) return "";
  std::vector<ComparedGroup> groups;
  for (const EvalResult& result : results) {
    ComparedGroup& group = groups.emplace_back();
    group.title = result.label;
    group.runs.push_back(compared_run(result));
  }
  CompareOptions options;
  options.level = results[0].config.confidence_level;
  options.seed = results[0].config.seed;
  const Comparison c = compare_models(groups, options);
  std::string out = str("Differences, paired by problem:\n");
  for (const ComparedMetric& metric : c.metrics) {
    out += str("\n", metric.title, "\n", contrasts_text(c, metric));
  }
  return out;
}

std::string comparison_csv(const Comparison& c, std::span<const PublishedTable> published) {
  std::string out =
      "metric,set,problems,model,value,low,high,std,change,change_low,change_high,p,p_holm,told_apart,kind\n";
  const auto text = [](double value) { return std::isnan(value) ? std::string() : str(value); };
  for (const ComparedMetric& metric : c.metrics) {
    for (size_t g = 0; g < c.groups.size(); ++g) {
      for (size_t s = 0; s < c.sets.size(); ++s) {
        const ComparedCell& cell = metric.cell[g][s];
        const Contrast contrast = g == 0 ? Contrast{} : metric.contrast[g][s];
        out += str(metric.key, ",", csv_text(c.sets[s].name), ",", c.sets[s].problems, ",", csv_text(c.groups[g]), ",",
                   text(cell.value.value), ",", text(cell.value.low), ",", text(cell.value.high), ",",
                   text(cell.deviation), ",", text(contrast.change.value), ",", text(contrast.change.low), ",",
                   text(contrast.change.high), ",", text(contrast.p), ",", text(contrast.p_holm), ",",
                   g == 0                ? ""
                   : contrast.told_apart ? "yes"
                                         : "no",
                   ",measured\n");
      }
    }
    for (const PublishedLine& line : lines_beside(c, metric, published)) {
      for (size_t s = 0; s < c.sets.size(); ++s) {
        if (line.cells[s].empty()) continue;
        out += str(metric.key, ",", csv_text(c.sets[s].name), ",,", csv_text(line.name), ",", line.percents[s] / 100,
                   ",,,,,,,,,,published\n");
      }
    }
  }
  return out;
}

std::string comparison_tex(const Comparison& c, std::span<const PublishedTable> published) {
  std::string out;
  for (const ComparedMetric& metric : c.metrics) {
    out += str("% ", metric.title, "; star: told apart from the first row (Holm over ", metric.comparisons,
               " comparisons)\n\\begin{tabular}{l", std::string(c.sets.size(), 'r'), "}\n\\toprule\n",
               tex_text(metric.title), " \\%");
    for (const ComparedSet& set : c.sets) out += str(" & ", tex_text(set.title));
    out += " \\\\\n\\midrule\n";
    for (size_t g = 0; g < c.groups.size(); ++g) {
      out += tex_text(c.groups[g]);
      for (size_t s = 0; s < c.sets.size(); ++s) {
        out += str(" & ", value_text(metric.cell[g][s], " $\\pm$ "),
                   g > 0 && metric.contrast[g][s].told_apart ? "$^{*}$" : "");
      }
      out += " \\\\\n";
    }
    const auto rows = lines_beside(c, metric, published);
    if (!rows.empty()) out += "\\midrule\n";
    for (const PublishedLine& row : rows) {
      out += tex_text(row.name);
      for (const std::string& cell : row.cells) out += str(" & ", cell.empty() ? "-" : cell);
      out += " \\\\\n";
    }
    out += "\\bottomrule\n\\end{tabular}\n";
  }
  return out;
}

std::string comparison_json(const Comparison& c, std::span<const PublishedTable> published) {
  OrderedJson out;
  out["format"] = "ucas-comparison-1";
  out["models"] = c.groups;
  out["differing_settings"] = c.differing;
  out["warnings"] = c.warnings;
  out["level"] = c.options.level;
  out["metrics"] = OrderedJson::array();
  for (const ComparedMetric& metric : c.metrics) {
    OrderedJson rows = OrderedJson::array();
    for (size_t s = 0; s < c.sets.size(); ++s) {
      for (size_t g = 0; g < c.groups.size(); ++g) {
        OrderedJson row = {{"set", c.sets[s].name}, {"problems", c.sets[s].problems}, {"model", c.groups[g]}};
        row["figure"] = json_of(metric.cell[g][s].value);
        row["std"] = number(metric.cell[g][s].deviation);
        if (g > 0) row["difference"] = json_of(metric.contrast[g][s]);
        rows.push_back(std::move(row));
      }
    }
    out["metrics"].push_back({{"metric", metric.key}, {"comparisons", metric.comparisons}, {"rows", std::move(rows)}});
  }
  out["published"] = OrderedJson::array();
  for (const PublishedTable& table : published) {
    OrderedJson rows = OrderedJson::array();
    for (const PublishedRow& row : table.rows) {
      OrderedJson figures = OrderedJson::object(), doubts = row.doubts;
      for (const PublishedFigure& f : row.figure) {
        figures[f.metric == "greedy" ? f.benchmark : str(f.benchmark, " ", f.metric)] = f.percent;
        if (!f.doubt.empty()) doubts.push_back(str(f.benchmark, " ", published_digits(f.percent), " is ", f.doubt));
      }
      rows.push_back({{"table", row.table}, {"name", row.name}, {"size", row.size}, {"runs", row.runs}});
      rows.back()["percent"] = std::move(figures);
      rows.back()["average"] = number(row.average);
      rows.back()["doubts"] = std::move(doubts);
    }
    out["published"].push_back(
        {{"title", table.title}, {"source", table.source}, {"note", table.note}, {"rows", std::move(rows)}});
  }
  return out.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace ucas
