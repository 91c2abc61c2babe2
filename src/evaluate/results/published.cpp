#include "evaluate/results/published.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/fields.h"

namespace ucas {

namespace {

[[noreturn]] void refuse(const Setting& setting, const std::string& what) {
  throw Error(ErrorKind::config, str(setting.where, ": ", printable(setting.key), ": ", what));
}

double percent_of(const Setting& setting) {
  const auto* whole = std::get_if<int64_t>(&setting.value);
  const auto* real = std::get_if<double>(&setting.value);
  const double value = whole ? static_cast<double>(*whole) : real ? *real : kUnknown;
  if (value >= 0 && value <= 100) return value;
  refuse(setting, str(whole || real ? str(value, ", ") : "", "expected a percentage from 0 to 100 such as 68.7"));
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
  const auto of_cell = [&](auto PublishedFigure::* part, auto value) {
    const auto found = std::ranges::find(row.figure, parts[3], &PublishedFigure::benchmark);
    if (found != row.figure.end()) (*found).*part = std::move(value);
    return found != row.figure.end();
  };
  if (parts.size() == 4 && key == "std") {
    of_cell(&PublishedFigure::deviation, percent_of(setting));
  } else if (parts.size() == 4 && key == "doubts") {
    if (!of_cell(&PublishedFigure::doubt, text_of(setting))) row.doubts.push_back(text_of(setting));
    row.average_doubted = row.average_doubted || parts[3] == "average";
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

void take(const Setting& setting, PublishedTable& table) {
  if (setting.key == "title" || setting.key == "source" || setting.key == "note") {
    (setting.key == "title" ? table.title : setting.key == "source" ? table.source : table.note) = text_of(setting);
    return;
  }
  const std::vector<std::string> parts = split(setting.key, '.');
  if (parts.size() < 3 || parts.size() > 4 || parts[0] != "row") {
    refuse(setting, "unknown key; expected title, source, note, and in a table [row.KEY] name, size and percentages");
  }
  auto row = std::ranges::find(table.rows, parts[1], &PublishedRow::key);
  if (row == table.rows.end()) row = table.rows.insert(row, {.key = parts[1], .name = parts[1]});
  take_of_row(setting, parts, *row);
}

Cell cell_of(const PublishedFigure& figure) {
  std::string text = published_digits(figure.percent);
  if (!std::isnan(figure.deviation)) text += " +- " + published_digits(figure.deviation);
  return Cell::printed(text + (figure.doubt.empty() ? "" : "?"), figure.percent / 100);
}

size_t sources_among(const std::vector<std::string>& sets) {
  return static_cast<size_t>(std::ranges::count_if(sets, [](const auto& s) { return s != "macro" && s != "micro"; }));
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
          Cell::printed(str(published_digits(row.average), row.average_doubted ? "?" : ""), row.average / 100);
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
  for (const Setting& setting : settings) take(setting, table);
  if (table.source.empty())
    throw Error(ErrorKind::config, str(where, ": source is missing: where were these figures published?"));
  if (table.rows.empty()) throw Error(ErrorKind::config, str(where, ": no table [row.KEY] with figures"));
  return table;
}

}  // namespace ucas
