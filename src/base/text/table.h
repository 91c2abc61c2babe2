// A table from one head and rows of plain text, for people and programs: aligned text, Markdown, CSV, LaTeX. Each
// format escapes the cells for itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

struct Table {
  std::vector<std::string> head;  // may be empty for text
  std::vector<std::vector<std::string>> rows;
  std::string align = "lr";   // of the columns, l or r; the last letter goes for all further ones
  std::vector<size_t> rules;  // rows that LaTeX draws a line above

  // Columns of one width, two spaces between. In lines of at most `width` characters (0 = of any length) the columns
  // that do not fit stand in blocks below, each beside the first column again.
  std::string text(const std::string& indent = "", size_t width = 0) const;
  std::string markdown() const;
  std::string csv() const;
  std::string tex() const;  // tabular with booktabs rules; " +- " becomes a plus-minus sign
};

// Text of files and users as a cell: control bytes shown, cut to a few hundred bytes, nothing that the format acts on.
std::string markdown_text(const std::string& text);
std::string tex_text(const std::string& text);
std::string csv_text(const std::string& text);  // with its quotes

}  // namespace ucas
