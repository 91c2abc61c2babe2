#include "report/table_formats.h"

#include <cmath>
#include <functional>

#include "base/file.h"
#include "base/str.h"
#include "base/table_text.h"
#include "report/escape.h"
#include "report/run_reader.h"
#include "report/summary.h"

namespace ucas {

namespace {

// The tables of these runs; `use` runs while what they point into is alive.
std::string with_tables(const std::vector<std::string>& paths,
                        const std::function<std::string(const std::vector<ResultTable>&)>& use) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::vector<RunGroup> groups = group_runs(runs);
  return use(results_of(groups));
}

std::string cell_text(const SummaryCell& cell, bool share, const char* plus_minus) {
  std::string text = cell_number(cell.mean, share);
  if (!std::isnan(cell.deviation)) text += str(plus_minus, cell_number(cell.deviation, share));
  return text;
}

std::string heading(const SummaryColumn& column, const char* percent) {
  return column.title + (column.share ? percent : "");
}

constexpr size_t kFewRows = 6;  // above, a sentence for each comparison would bury what it says

std::string sentences(const ResultTable& table) {
  std::string out = "\n";
  for (const Difference& d : table.differences) out += str("- ", markdown_text(d.sentence), "\n");
  return out;
}

// How many comparisons could be told apart, of how many, and which of those between trained rows. Many comparisons at
// 95 % find differences by chance alone, so the expected number stands beside.
std::string digest(const ResultTable& table) {
  int64_t base = 0, base_apart = 0, trained = 0;
  std::vector<std::string> apart;
  for (const Difference& d : table.differences) {
    if (d.from == 0 && !table.rows[0].group->trained) {  // the untrained group stands first
      ++base;
      base_apart += d.told_apart();
    } else {
      ++trained;
      if (d.told_apart()) apart.push_back(d.sentence);
    }
  }
  std::string out = "\n";
  if (base > 0) {
    out += str("- Against the untrained base: ", base_apart, " of ", base,
               " comparisons (greedy and mean@k of each row) can be told apart at 95 %.\n");
  }
  if (trained > 0) {
    out += str("- Against the first trained row: ", apart.size(), " of ", trained,
               " comparisons can be told apart; about ", fixed(0.05 * static_cast<double>(trained), 0),
               " would be by chance alone if all were equal", apart.empty() ? "." : ":", "\n");
    for (const std::string& sentence : apart) out += str("  - ", markdown_text(sentence), "\n");
  }
  return out;
}

std::string caption(const ResultTable& table) {
  std::string text = str(short_path(table.data, 1), ": ", grouped(table.problems), " problems");
  if (table.samples > 0) text += str(", ", table.samples, " samples each");
  if (!std::isnan(table.temperature)) text += str(" at temperature ", table.temperature);
  return text;
}

}  // namespace

std::string results_markdown(const std::vector<std::string>& paths, const std::string& title,
                             const std::string& command) {
  return with_tables(paths, [&](const std::vector<ResultTable>& tables) {
    std::string out = str("# ", title, "\n\nMade by `", command, "`. Mean +- standard deviation over seeds.\n");
    for (const ResultTable& table : tables) {
      out += str("\n", caption(table), ".\n\n| |");
      for (const SummaryColumn& column : table.columns) out += str(" ", heading(column, " %"), " |");
      out += "\n| --- |";
      for (size_t c = 0; c < table.columns.size(); ++c) out += " --- |";
      out += "\n";
      for (const SummaryRow& row : table.rows) {
        out += str("| ", markdown_text(row.group->title), " |");
        for (size_t c = 0; c < row.cells.size(); ++c) {
          out += str(" ", cell_text(row.cells[c], table.columns[c].share, " +- "), " |");
        }
        out += "\n";
      }
      out += table.rows.size() <= kFewRows ? sentences(table) : digest(table);
      for (const std::string& sentence : {ceiling_sentence(table), unclaimed_sentence(table)}) {
        if (!sentence.empty()) out += str("- ", sentence, "\n");
      }
    }
    return out;
  });
}

std::string results_csv(const std::vector<std::string>& paths) {
  return with_tables(paths, [&](const std::vector<ResultTable>& tables) {
    std::string out = "data,run,runs,quantity,mean,std,low,high\n";
    auto number = [](double value) { return std::isnan(value) ? std::string() : str(value); };
    for (const ResultTable& table : tables) {
      for (const SummaryRow& row : table.rows) {
        for (size_t c = 0; c < row.cells.size(); ++c) {
          const SummaryCell& cell = row.cells[c];
          if (cell.values.empty()) continue;
          out += str(csv_text(short_path(table.data, 1)), ",", csv_text(row.group->title), ",", cell.values.size(), ",",
                     table.columns[c].key, ",", number(cell.mean), ",", number(cell.deviation), ",",
                     number(cell.interval.low), ",", number(cell.interval.high), "\n");
        }
      }
    }
    return out;
  });
}

std::string results_tex(const std::vector<std::string>& paths) {
  return with_tables(paths, [&](const std::vector<ResultTable>& tables) {
    std::string out;
    for (const ResultTable& table : tables) {
      out +=
          str("% ", caption(table), "\n\\begin{tabular}{l", std::string(table.columns.size(), 'r'), "}\n\\toprule\n");
      for (const SummaryColumn& column : table.columns) out += str(" & ", heading(column, " \\%"));
      out += " \\\\\n\\midrule\n";
      for (const SummaryRow& row : table.rows) {
        out += tex_text(row.group->title);
        for (size_t c = 0; c < row.cells.size(); ++c) {
          out += str(" & ", cell_text(row.cells[c], table.columns[c].share, " $\\pm$ "));
        }
        out += " \\\\\n";
      }
      out += "\\bottomrule\n\\end{tabular}\n";
    }
    return out;
  });
}

}  // namespace ucas
