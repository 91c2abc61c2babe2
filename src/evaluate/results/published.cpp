#include "evaluate/results/published.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/fields.h"
#include "evaluate/benchmark.h"

namespace ucas {

namespace {

[[noreturn]] void refuse(const Setting& setting, const std::string& what) {
  throw Error(ErrorKind::config, str(setting.where, ": ", printable(setting.key), ": ", what));
}

std::string text_of(const Setting& setting) {
  const auto* text = std::get_if<std::string>(&setting.value);
  if (text == nullptr) refuse(setting, "expected text");
  return *text;
}

double percent_of(const Setting& setting) {
  double value = -1;
  if (const auto* whole = std::get_if<int64_t>(&setting.value)) {
    value = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&setting.value)) {
    value = *real;
  } else {
    refuse(setting, "expected a percentage such as 68.7 under the name of a benchmark");
  }
  if (!(value >= 0 && value <= 100)) refuse(setting, str(value, ", expected a percentage from 0 to 100"));
  return value;
}

int64_t count_of(const Setting& setting) {
  const auto* whole = std::get_if<int64_t>(&setting.value);
  if (whole == nullptr || *whole < 1) refuse(setting, "expected a whole number of runs, at least 1");
  return *whole;
}

int64_t line_of(const Setting& setting) {
  return std::strtoll(setting.where.c_str() + setting.where.rfind(':') + 1, nullptr, 10);
}

void take_of_row(const Setting& setting, const std::vector<std::string>& parts, PublishedRow& row) {
  const std::string& key = parts[2];
  if (parts.size() == 4 && key == "std") {
    for (PublishedFigure& figure : row.figure) {
      if (figure.benchmark == parts[3]) figure.deviation = percent_of(setting);
    }
  } else if (parts.size() == 4) {
    row.figure.push_back({key, parts[3], percent_of(setting), kUnknown, ""});
  } else if (key == "name" || key == "size" || key == "table") {
    (key == "name" ? row.name : key == "size" ? row.size : row.table) = text_of(setting);
  } else if (key == "doubt") {
    row.doubts.push_back(text_of(setting));
  } else if (key == "runs") {
    row.runs = count_of(setting);
  } else if (key == "average") {
    row.average = percent_of(setting);
  } else {
    row.figure.push_back({key, "greedy", percent_of(setting), kUnknown, ""});
  }
}

void take(const Setting& setting, PublishedTable& table, std::map<std::string, PublishedRow*>& rows) {
  if (setting.key == "title" || setting.key == "source" || setting.key == "note") {
    (setting.key == "title" ? table.title : setting.key == "source" ? table.source : table.note) = text_of(setting);
    return;
  }
  const std::vector<std::string> parts = split(setting.key, '.');
  if (parts.size() < 3 || parts.size() > 4 || parts[0] != "row") {
    refuse(setting, "unknown key; expected title, source, note, and in a table [row.KEY] name, size and percentages");
  }
  take_of_row(setting, parts, *rows.at(parts[1]));
}

// Half a unit of the last digit that was printed.
double slack_of(double percent) {
  const std::string digits = published_digits(percent);
  return 0.5 * std::pow(10.0, -static_cast<double>(digits.size() - digits.find('.') - 1)) + 1e-9;
}

int64_t problems_of(const std::string& benchmark) {
  return embedded(str("benchmarks/", benchmark, ".toml")) ? load_suite(benchmark).benchmarks[0].problems : 0;
}

// A share of greedy answers is a whole number of the set's problems, over several runs of all of theirs together.
std::string count_doubt(const PublishedFigure& figure, int64_t runs) {
  const auto n = static_cast<double>(problems_of(figure.benchmark) * runs);
  if (n == 0 || figure.metric != "greedy") return "";
  const double below = std::floor(figure.percent * n / 100), low = 100 * below / n, high = 100 * (below + 1) / n;
  const double slack = slack_of(figure.percent);
  if (figure.percent - low <= slack || high - figure.percent <= slack) return "";
  return str("no count of ", n, runs > 1 ? " answers: " : " problems: ", below, " are ", fixed(low, 2), ", ", below + 1,
             " are ", fixed(high, 2));
}

std::string average_doubt(const PublishedRow& row) {
  if (std::isnan(row.average) || row.figure.empty()) return "";
  double sum = 0;
  for (const PublishedFigure& figure : row.figure) sum += figure.percent;
  const double mean = sum / static_cast<double>(row.figure.size());
  if (std::fabs(mean - row.average) <= slack_of(row.average)) return "";
  return str("its average is printed as ", published_digits(row.average), ", its cells give ", fixed(mean, 2));
}

// A single run beside the mean of several of the same method and size.
std::string seeds_doubt(const PublishedRow& row, const PublishedTable& table) {
  for (const PublishedRow& other : table.rows) {
    if (row.runs > 1 || other.runs < 2 || other.name != row.name || other.size != row.size) continue;
    const double less = row.average - other.average;
    if (std::isnan(less) || std::fabs(less) < 0.5) continue;
    return str("a single run; the mean of ", other.runs, " seeds (", other.table, ") is ",
               published_digits(other.average), ", ", fixed(std::fabs(less), 1), " points ",
               less > 0 ? "lower" : "higher");
  }
  return "";
}

Cell cell_of(const PublishedFigure& figure) {
  std::string text = published_digits(figure.percent);
  if (!std::isnan(figure.deviation)) text += " +- " + published_digits(figure.deviation);
  return Cell::printed(text + (figure.doubt.empty() ? "" : "?"), figure.percent / 100);
}

size_t sources_among(const std::vector<std::string>& sets) {
  return static_cast<size_t>(std::ranges::count_if(sets, [](const auto& s) { return s != "macro" && s != "micro"; }));
}

void find_doubts(PublishedTable& table) {
  for (PublishedRow& row : table.rows) {
    for (PublishedFigure& figure : row.figure) figure.doubt = count_doubt(figure, row.runs);
    for (std::string doubt : {average_doubt(row), seeds_doubt(row, table)}) {
      if (!doubt.empty()) row.doubts.push_back(std::move(doubt));
    }
  }
}

}  // namespace

const PublishedFigure* PublishedRow::find(const std::string& benchmark, const std::string& metric) const {
  for (const PublishedFigure& one : figure) {
    if (one.benchmark == benchmark && one.metric == metric) return &one;
  }
  return nullptr;
}

std::vector<PublishedLine> published_lines(const PublishedTable& table, const std::string& metric,
                                           const std::vector<std::string>& sets) {
  const std::string asked = metric.starts_with("mean@") ? "greedy" : metric;
  std::vector<PublishedLine> lines;
  std::set<std::string> seen;
  for (const PublishedRow& row : table.rows) {
    PublishedLine line;
    size_t own = 0;  // of the row's benchmarks, those compared
    for (const std::string& set : sets) {
      const PublishedFigure* figure = row.find(set, asked);
      line.cells.push_back(figure ? cell_of(*figure) : Cell::unknown());
      if (figure) ++own;
      if (figure && !figure->doubt.empty()) {
        line.doubts.push_back(str(set, " ", published_digits(figure->percent), " is ", figure->doubt));
      }
    }
    if (own == 0) continue;
    const auto macro = std::ranges::find(sets, "macro");
    if (macro != sets.end() && own == row.figure.size() && own == sources_among(sets) && !std::isnan(row.average)) {
      line.cells[static_cast<size_t>(macro - sets.begin())] =
          Cell::printed(str(published_digits(row.average), average_doubt(row).empty() ? "" : "?"), row.average / 100);
    }
    std::string all = row.size;
    for (const Cell& cell : line.cells) all += "|" + cell.text();
    if (!seen.insert(all).second && own > 1) continue;
    line.name = str(row.name, row.size.empty() ? "" : " ", row.size, " (published", row.table.empty() ? "" : ", ",
                    row.table, ")");
    line.doubts.insert(line.doubts.end(), row.doubts.begin(), row.doubts.end());
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string published_digits(double percent) {
  const std::string text = str(percent);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

PublishedTable load_published(const std::string& name_or_path) {
  const auto text = embedded(str("published/", name_or_path, ".toml"));
  if (!text && name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".toml")) {
    throw Error(ErrorKind::config, str("published figures \"", printable(name_or_path), "\": unknown; there are ",
                                       join(embedded_stems("published/"), ", "), ", or give the path of a .toml file"));
  }
  const std::string where = text ? str("published/", name_or_path, ".toml") : name_or_path;
  std::vector<Setting> settings = text ? parse_toml(std::string(*text), where) : read_toml(name_or_path);
  std::ranges::stable_sort(settings, {}, line_of);  // the library hands them out by name

  PublishedTable table;
  std::vector<std::string> order;
  for (const Setting& setting : settings) {
    const std::vector<std::string> parts = split(setting.key, '.');
    if (parts.size() > 2 && parts[0] == "row" && std::find(order.begin(), order.end(), parts[1]) == order.end()) {
      order.push_back(parts[1]);
    }
  }
  table.rows.resize(order.size());
  std::map<std::string, PublishedRow*> rows;
  for (size_t i = 0; i < order.size(); ++i) rows[order[i]] = &table.rows[i];
  for (const Setting& setting : settings) take(setting, table, rows);
  for (size_t i = 0; i < order.size(); ++i) {
    if (table.rows[i].name.empty()) table.rows[i].name = order[i];
  }
  if (table.source.empty())
    throw Error(ErrorKind::config, str(where, ": source is missing: where were these figures published?"));
  if (table.rows.empty()) throw Error(ErrorKind::config, str(where, ": no table [row.KEY] with figures"));
  find_doubts(table);
  return table;
}

}  // namespace ucas
