// Figures of articles, to compare with one's own: published/NAME.toml (in the binary), or a file of the user's own with
// the same keys. They are shown, marked and with their source, and enter no test and no average.
//   title, source, note
//   [row.KEY]            table, name, size, runs, doubt, average, and a percentage for each benchmark: amc83 = 68.7
//   [row.KEY.std]        deviations over `runs` runs
//   [row.KEY.doubts]     what makes a figure, the average or `runs` doubtful, after the figures
//   [row.KEY.BENCHMARK]  of another metric than greedy accuracy: "pass@4" = 65.06
// Fed to `ucas compare --published`. LibTorch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/table.h"

namespace ucas {

struct PublishedFigure {
  std::string benchmark, metric = "greedy";
  double percent = 0, deviation = kUnknown;  // deviation over the row's runs
  std::string doubt;                         // "" = none
};

struct PublishedRow {
  std::string key, name;                // of the file; of the model or method, as the article has it
  std::string table, size;              // "Table 1", "7B"; may be empty
  int64_t runs = 1;                     // that its figures are means of
  std::vector<PublishedFigure> figure;  // in order of the file
  double average = kUnknown;            // as printed, percent
  bool average_doubted = false;
  std::vector<std::string> doubts;  // of the whole row
  const PublishedFigure* find(const std::string& benchmark, const std::string& metric) const;
};

struct PublishedTable {
  std::string title, source, note;
  std::vector<PublishedRow> rows;  // in order of the file
};

// Errors: config (FILE:LINE and what is wrong), path.
PublishedTable load_published(const std::string& name_or_path);

// One row for one metric of a comparison: a cell for each of its sets, unknown if the article has none, "?" after
// doubtful ones.
struct PublishedLine {
  std::string name;  // "UCAS 7B (published, Table 1)"
  std::vector<Cell> cells;
  std::vector<std::string> doubts;  // of the cells and of the row, for people
};
// Rows that say something of these sets; those that repeat a row above are left out. `metric` as in comparisons
// ("greedy", "pass@4"; figures of greedy answers are also compared with mean@n). "macro" among the sets is their
// average.
std::vector<PublishedLine> published_lines(const PublishedTable& table, const std::string& metric,
                                           const std::vector<std::string>& sets);

// A percentage with the digits that it was printed with, at least one.
std::string published_digits(double percent);

}  // namespace ucas
