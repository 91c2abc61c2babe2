#include "base/text/table.h"

#include <algorithm>
#include <string_view>

#include "base/str.h"

namespace ucas {

namespace {

using Row = std::vector<std::string>;

constexpr size_t kLongest = 400;

bool among(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

char side_of(const Table& table, size_t column) {
  return table.align.empty() ? 'l' : table.align[std::min(column, table.align.size() - 1)];
}

template <class Escape>
std::string joined(const Row& row, const char* separator, Escape escape) {
  Row cells;
  for (const std::string& cell : row) cells.push_back(escape(cell));
  return join(cells, separator);
}

// Quoted only where it has to be: numbers stay numbers for every reader.
std::string csv_cell(const std::string& text) {
  return text.find_first_of(",\"\n\r") == std::string::npos && text == printable(text, kLongest) ? text
                                                                                                 : csv_text(text);
}

std::string tex_cell(const std::string& text) {
  std::string out = tex_text(text);
  const size_t at = out.find(" +- ");
  return at == std::string::npos ? out : str(out.substr(0, at), " $\\pm$ ", out.substr(at + 4));
}

}  // namespace

std::string Table::text(const std::string& indent, size_t width) const {
  std::vector<Row> lines;
  if (!head.empty()) lines.push_back(head);
  lines.insert(lines.end(), rows.begin(), rows.end());
  std::vector<size_t> widths;
  for (Row& line : lines) {
    for (std::string& cell : line) cell = printable(cell, kLongest);
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (size_t first = 1, next = 1; first == 1 || first < widths.size(); first = next) {  // a block of columns
    size_t used = indent.size() + (widths.empty() ? 0 : widths[0]);
    for (next = first; next < widths.size(); ++next) {
      used += 2 + widths[next];
      if (width > 0 && used > width && next > first) break;
    }
    if (first > 1) out += "\n";
    for (const Row& line : lines) {
      std::string drawn = indent;
      for (size_t i = 0; i < std::min(line.size(), next); i = i == 0 ? first : i + 1) {
        drawn += i > 0 ? "  " : "";
        drawn += side_of(*this, i) == 'l' ? pad_right(line[i], widths[i]) : pad_left(line[i], widths[i]);
      }
      out += drawn.substr(0, drawn.find_last_not_of(' ') + 1) + "\n";
    }
    if (next == first) break;
  }
  return out;
}

std::string Table::markdown() const {
  const auto line = [](const std::string& cells) { return str("| ", cells, " |\n"); };
  std::string out = line(joined(head, " | ", markdown_text)) + line(join(Row(head.size(), "---"), " | "));
  for (const Row& row : rows) out += line(joined(row, " | ", markdown_text));
  return out;
}

std::string Table::csv() const {
  std::string out = joined(head, ",", csv_cell) + "\n";
  for (const Row& row : rows) out += joined(row, ",", csv_cell) + "\n";
  return out;
}

std::string Table::tex() const {
  std::string columns;
  for (size_t i = 0; i < head.size(); ++i) columns += side_of(*this, i);
  std::string out =
      str("\\begin{tabular}{", columns, "}\n\\toprule\n", joined(head, " & ", tex_cell), " \\\\\n\\midrule\n");
  for (size_t r = 0; r < rows.size(); ++r) {
    if (std::ranges::find(rules, r) != rules.end()) out += "\\midrule\n";
    out += joined(rows[r], " & ", tex_cell) + " \\\\\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string markdown_text(const std::string& text) {
  std::string out;
  for (char c : printable(text, kLongest)) {
    if (among(c, "|*_`<[]\\")) out += '\\';
    out += c;
  }
  return out;
}

std::string tex_text(const std::string& text) {
  std::string out;
  for (char c : printable(text, kLongest)) {
    if (c == '\\') {
      out += "\\textbackslash{}";
    } else if (c == '~') {
      out += "\\textasciitilde{}";
    } else if (c == '^') {
      out += "\\textasciicircum{}";
    } else {
      if (among(c, "&%$#_{}")) out += '\\';
      out += c;
    }
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

}  // namespace ucas
