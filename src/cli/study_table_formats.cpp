// A study's table for people and programs: Markdown, CSV, LaTeX, terminal.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "base/table_text.h"
#include "cli/study_table.h"
#include "report/escape.h"
#include "report/summary.h"

namespace ucas {

namespace {

bool in_percent(const std::string& column) { return !column.starts_with("entropy") && !column.starts_with("length"); }

std::string heading(const std::string& column, const char* percent) {
  std::string text = column;
  if (text.ends_with(":macro")) text = text.substr(0, text.size() - 6) + ", macro";
  return text + (in_percent(column) ? percent : "");
}

std::string cell_text(const StudyCell& cell, bool share, const char* plus_minus) {
  std::string text = cell_number(cell.mean, share);
  if (!std::isnan(cell.deviation)) text += str(plus_minus, cell_number(cell.deviation, share));
  return text;
}

// Percentage points for shares, the quantity's own unit otherwise.
std::string signed_change(double value, bool share) {
  if (std::isnan(value)) return "-";
  std::string text = share ? fixed(100 * std::fabs(value), 1) : cell_number(std::fabs(value), false);
  if (share && text == "0.0") text = fixed(100 * std::fabs(value), 2);
  bool zero = text.find_first_not_of("0.") == std::string::npos;
  return str(zero ? "" : value < 0 ? "-" : "+", zero ? "0" : text);
}

std::string between(double low, double high, bool share) {
  return str(signed_change(low, share), " to ", signed_change(high, share));
}

std::string p_text(double p) {
  if (std::isnan(p)) return "-";
  return p < 0.001 ? "< 0.001" : fixed(p, 3);
}

std::string caption(const StudyTable& table) {
  std::string text = str(grouped(table.problems), " problems");
  if (table.samples > 0) text += str(", ", table.samples, " samples each");
  if (table.samples > 0 && !std::isnan(table.temperature)) text += str(" at temperature ", table.temperature);
  size_t most = 0;
  for (const StudyRow& row : table.rows) most = std::max(most, row.seeds.size());
  return text + (most > 1 ? str("; mean +- standard deviation over ", most, " seeds") : "");
}

std::string markdown_row(const std::vector<std::string>& cells) { return str("| ", join(cells, " | "), " |\n"); }

std::string markdown_head(const std::vector<std::string>& cells) {
  return markdown_row(cells) + markdown_row(std::vector<std::string>(cells.size(), "---"));
}

std::string main_table(const StudyTable& table) {
  std::vector<std::string> head = {""};
  for (const std::string& column : table.columns) head.push_back(heading(column, " %"));
  std::string out = markdown_head(head);
  for (const StudyRow& row : table.rows) {
    std::vector<std::string> cells = {markdown_text(row.title)};
    for (size_t c = 0; c < row.cells.size(); ++c) {
      cells.push_back(cell_text(row.cells[c], in_percent(table.columns[c]), " +- "));
    }
    out += markdown_row(cells);
  }
  return out;
}

// Every row against the reference.
std::string comparison_table(const StudyTable& table) {
  std::string rows;
  int64_t comparisons = 0;
  std::vector<std::string> apart;
  for (const StudyRow& row : table.rows) {
    for (size_t c = 0; c < row.against.size(); ++c) {
      const PairedRuns& d = row.against[c];
      const bool share = in_percent(table.compare[c]);
      if (!d.over_seeds.known()) continue;
      std::string title = markdown_text(row.title);
      std::string t = d.over_seeds.bounded() ? between(d.over_seeds.low, d.over_seeds.high, share) : "-";
      std::string b = d.has_bootstrap ? between(d.over_both.low, d.over_both.high, share) : "-";
      rows += markdown_row({title, table.compare[c], signed_change(d.over_seeds.value, share), t, p_text(d.p), b});
      if (!row.trained) continue;
      ++comparisons;
      if (!d.told_apart()) continue;
      apart.push_back(str("- ", title, ", ", table.compare[c], ": ", signed_change(d.over_seeds.value, share),
                          share ? " points" : "", " against ", markdown_text(table.reference), " (",
                          d.over_seeds.bounded()
                              ? str(d.p < 0.001 ? "p " : "p = ", p_text(d.p), " over ", d.seeds, " seeds")
                              : "one seed: of these two models, not of the methods",
                          ").\n"));
    }
  }
  if (rows.empty()) return "";
  std::string out =
      str("\n## Against ", markdown_text(table.reference), "\n\n",
          "Differences in percentage points (entropy: nats, length: tokens), runs paired by seed, problems "
          "by id.\nTwo 95 % intervals: of t over the seeds, and of a bootstrap that draws seeds and "
          "problems together.\n\n");
  out += markdown_head({"", "", "difference", "t interval", "p", "bootstrap interval"}) + rows;
  if (comparisons == 0) return out;
  out += str("\n", apart.size(), " of ", comparisons,
             " comparisons of trained rows can be told apart (both intervals "
             "exclude 0); were all rows equal, at most about ",
             fixed(0.05 * static_cast<double>(comparisons), 1), " would be by chance alone",
             apart.empty() ? ".\n" : ":\n\n");
  for (const std::string& sentence : apart) out += sentence;
  return out;
}

// A map over the last two axes of a grid.
std::string grid_table(const StudyTable& table) {
  if (table.options.axes.size() < 2) return "";
  auto column = std::ranges::find(table.columns, table.options.metric);
  if (column == table.columns.end()) return "";
  const auto c = static_cast<size_t>(column - table.columns.begin());
  const size_t down = table.options.axes.size() - 2, across = down + 1;
  std::vector<std::string> values_down, values_across;
  auto note = [](std::vector<std::string>& list, const std::string& value) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(value);
  };
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (!table.rows[i].trained || table.settings[i][down].second.empty()) continue;
    note(values_down, table.settings[i][down].second);
    note(values_across, table.settings[i][across].second);
  }
  auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::vector<std::string> head = {str(last(table.options.axes[down]), " \\ ", last(table.options.axes[across]))};
  head.insert(head.end(), values_across.begin(), values_across.end());
  std::string out = str("\n## ", heading(*column, " %"), " over ", last(table.options.axes[down]), " and ",
                        last(table.options.axes[across]), "\n\n", markdown_head(head));
  for (const std::string& a : values_down) {
    std::vector<std::string> cells = {a};
    for (const std::string& b : values_across) {
      std::string text = "-";
      for (size_t i = 0; i < table.rows.size(); ++i) {
        const auto& settings = table.settings[i];
        if (table.rows[i].trained && settings[down].second == a && settings[across].second == b) {
          text = cell_text(table.rows[i].cells[c], in_percent(*column), " +- ");
        }
      }
      cells.push_back(text);
    }
    out += markdown_row(cells);
  }
  return out;
}

std::string seed_table(const StudyTable& table) {
  std::vector<std::string> head = {"", "seed"};
  for (const std::string& column : table.columns) head.push_back(heading(column, " %"));
  std::string out = "\n## Each seed\n\n" + markdown_head(head);
  for (const StudyRow& row : table.rows) {
    for (size_t i = 0; i < row.seeds.size(); ++i) {
      std::vector<std::string> cells = {markdown_text(row.title), row.trained ? str(row.seeds[i]) : "-"};
      for (size_t c = 0; c < row.cells.size(); ++c) {
        cells.push_back(cell_number(row.cells[c].values[i], in_percent(table.columns[c])));
      }
      out += markdown_row(cells);
    }
  }
  return out;
}

}  // namespace

std::string table_markdown(const StudyTable& table) {
  std::string out = str("# ", table.options.title, "\n\nMade by `", table.options.command, "`: ", caption(table),
                        ".\n\n", main_table(table), grid_table(table));
  if (table.options.each_seed) out += seed_table(table);
  return out + comparison_table(table);
}

std::string table_csv(const StudyTable& table) {
  std::string out = "evaluation,row,seed,quantity,value,std,seeds,difference,low,high,p,bootstrap_low,bootstrap_high\n";
  auto number = [](double value) { return std::isnan(value) ? std::string() : str(value); };
  for (const StudyRow& row : table.rows) {
    for (size_t c = 0; c < row.cells.size(); ++c) {
      const StudyCell& cell = row.cells[c];
      std::string head = str(csv_text(table.options.eval), ",", csv_text(row.title), ",");
      for (size_t i = 0; i < cell.values.size(); ++i) {
        out += str(head, row.trained ? str(row.seeds[i]) : "", ",", table.columns[c], ",", number(cell.values[i]),
                   ",,1,,,,,,\n");
      }
      auto compared = std::ranges::find(table.compare, table.columns[c]);
      std::string against = ",,,,,";
      if (compared != table.compare.end() && !row.against.empty()) {
        const PairedRuns& d = row.against[static_cast<size_t>(compared - table.compare.begin())];
        against = str(number(d.over_seeds.value), ",", number(d.over_seeds.low), ",", number(d.over_seeds.high), ",",
                      number(d.p), ",", d.has_bootstrap ? number(d.over_both.low) : "", ",",
                      d.has_bootstrap ? number(d.over_both.high) : "");
      }
      out += str(head, "all,", table.columns[c], ",", number(cell.mean), ",", number(cell.deviation), ",",
                 cell.values.size(), ",", against, "\n");
    }
  }
  return out;
}

std::string table_tex(const StudyTable& table) {
  std::string out = str("% ", tex_text(caption(table)), "\n\\begin{tabular}{l", std::string(table.columns.size(), 'r'),
                        "}\n\\toprule\n");
  for (const std::string& column : table.columns) out += str(" & ", tex_text(heading(column, " %")));
  out += " \\\\\n\\midrule\n";
  for (const StudyRow& row : table.rows) {
    out += tex_text(row.title);
    for (size_t c = 0; c < row.cells.size(); ++c) {
      out += str(" & ", cell_text(row.cells[c], in_percent(table.columns[c]), " $\\pm$ "));
    }
    out += " \\\\\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string table_text(const StudyTable& table) {
  std::vector<std::vector<std::string>> lines(1, {""});
  for (const std::string& column : table.columns) lines[0].push_back(heading(column, " %"));
  for (const StudyRow& row : table.rows) {
    std::vector<std::string> line = {printable(row.title, 40)};
    for (size_t c = 0; c < row.cells.size(); ++c) {
      line.push_back(cell_text(row.cells[c], in_percent(table.columns[c]), " +- "));
    }
    lines.push_back(std::move(line));
  }
  std::vector<size_t> width(lines[0].size());
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], line[c].size());
  }
  std::string out = caption(table) + "\n\n";
  for (const auto& line : lines) {
    std::string text = pad_right(line[0], width[0]);
    for (size_t c = 1; c < line.size(); ++c) text += "  " + pad_left(line[c], width[c]);
    out += text + "\n";
  }
  return out;
}

}  // namespace ucas
