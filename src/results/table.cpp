#include "results/table.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kLongest = 400;

bool among(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

char side_of(const Table& table, size_t column) {
  return table.align.empty() ? 'l' : table.align[std::min(column, table.align.size() - 1)];
}

std::string joined(const std::vector<Cell>& row, const char* separator, std::string (*shown)(const Cell&)) {
  std::vector<std::string> cells;
  for (const Cell& cell : row) cells.push_back(shown(cell));
  return join(cells, separator);
}

std::string markdown_cell(const Cell& cell) { return markdown_text(cell.text()); }

// Quoted only where it has to be: numbers stay numbers for every reader.
std::string csv_cell(const Cell& cell) {
  const std::string text = cell.exact();
  const bool plain = text.find_first_of(",\"\n\r") == std::string::npos && text == printable(text, kLongest);
  return plain ? text : csv_text(text);
}

}  // namespace

std::string Cell::number_only() const {
  switch (kind) {
    case Kind::words:
      return words;
    case Kind::value:
      return number_text(number.value, share);
    case Kind::change:
      return change_text(number.value, share);
    case Kind::decimal:
      return with_sign ? signed_text(number.value, digits) : decimal_text(number.value, digits);
    case Kind::count:
      return grouped(static_cast<int64_t>(number.value));
    case Kind::p:
      return p_text(number.value);
  }
  return "";
}

std::string Cell::spread() const { return std::isnan(deviation) ? "" : number_text(deviation, share); }

std::string Cell::text() const {
  std::string out = before + number_only();
  if (!std::isnan(deviation)) out += " +- " + spread();
  if (bounded) out += " " + bounds_text(number, share);
  return out + after;
}

std::string Cell::exact() const {
  if (!number.known()) return words;
  return kind == Kind::count ? str(static_cast<int64_t>(number.value)) : str(number.value);
}

std::string Table::text(const std::string& indent, size_t width) const {
  std::vector<std::vector<std::string>> lines;
  std::vector<size_t> widths;
  const auto add = [&](const std::vector<Cell>& cells) {
    std::vector<std::string>& line = lines.emplace_back();
    widths.resize(std::max(widths.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      line.push_back(printable(cells[i].text(), kLongest));
      widths[i] = std::max(widths[i], characters(line[i]));
    }
  };
  if (!head.empty()) add(head);
  for (const Row& row : rows) add(row.cells);
  std::string out = caption.empty() ? "" : caption + "\n\n";
  for (size_t first = 1, next = 1; first == 1 || first < widths.size(); first = next) {  // a block of columns
    size_t used = indent.size() + (widths.empty() ? 0 : widths[0]);
    for (next = first; next < widths.size(); ++next) {
      used += 2 + widths[next];
      if (width > 0 && used > width && next > first) break;
    }
    if (first > 1) out += "\n";
    for (const std::vector<std::string>& line : lines) {
      std::string row = indent;
      for (size_t i = 0; i < std::min(line.size(), next); i = i == 0 ? first : i + 1) {
        row += i > 0 ? "  " : "";
        row += side_of(*this, i) == 'l' ? pad_right(line[i], widths[i]) : pad_left(line[i], widths[i]);
      }
      out += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
    }
    if (next == first) break;
  }
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += str(indent, printable(note, kLongest), "\n");
  return out;
}

std::string Table::markdown() const {
  const auto line = [](const std::string& cells) { return str("| ", cells, " |\n"); };
  std::string out = caption.empty() ? "" : caption + "\n\n";
  out += line(joined(head, " | ", markdown_cell)) + line(join(std::vector<std::string>(head.size(), "---"), " | "));
  for (const Row& row : rows) out += line(joined(row.cells, " | ", markdown_cell));
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += note + "\n";
  return out;
}

std::string Table::csv() const {
  std::string out = joined(head, ",", csv_cell) + "\n";
  for (const Row& row : rows) out += joined(row.cells, ",", csv_cell) + "\n";
  return out;
}

std::string markdown_text(const std::string& text) {
  std::string out;
  for (char c : printable(text, kLongest)) {
    if (among(c, "|*_`<[]\\")) out += '\\';
    out += c;
  }
  return out;
}

std::string csv_text(const std::string& text) {
  std::string out = "\"";
  for (char c : printable(text, kLongest)) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string number_text(double value, bool share) {
  if (std::isnan(value)) return "-";
  const double size = std::fabs(value);
  const int digits = share || (size >= 10 && size < 100) ? 1 : size >= 100 ? 0 : size >= 1 ? 2 : 3;
  const std::string text = fixed(share ? 100 * value : value, digits);
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return zero && text[0] == '-' ? text.substr(1) : text;  // no minus before a zero
}

std::string bounds_text(const Figure& f, bool share) {
  return f.bounded() ? str("[", number_text(f.low, share), ", ", number_text(f.high, share), "]") : "";
}

std::string change_text(double value, bool share) {
  if (std::isnan(value)) return "-";
  std::string text = number_text(std::fabs(value), share);
  if (share && text == "0.0") text = fixed(100 * std::fabs(value), 2);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return zero ? "0" : str(value < 0 ? "-" : "+", text);
}

std::string interval_text(const Figure& change, bool share) {
  return change.bounded() ? str(change_text(change.low, share), " to ", change_text(change.high, share)) : "";
}

std::string p_text(double p) { return std::isnan(p) ? "-" : p < 0.001 ? "< 0.001" : fixed(p, 3); }

std::string measure_text(double value) {
  const double size = std::fabs(value);
  if (!std::isfinite(value) || size == 0) return size == 0 ? "0" : "-";
  if (size >= 1e-3 && size < 1e5) return fixed(value, size >= 100 ? 1 : size >= 1 ? 2 : 3);
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

std::string decimal_text(double value, int digits) { return std::isfinite(value) ? fixed(value, digits) : "-"; }

std::string signed_text(double value, int digits) {
  return (std::isfinite(value) && value > 0 ? "+" : "") + decimal_text(value, digits);
}

std::string share_text(double share) { return std::isfinite(share) ? percent(share) : "-"; }

std::string share_text(int64_t part, int64_t of) {
  return share_text(static_cast<double>(part) / static_cast<double>(of));
}

}  // namespace ucas
