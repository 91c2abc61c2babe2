// The table that every result is shown in: evaluations, comparisons, studies, reports, model cards, plans. Here are its
// writers for people and programs: aligned text, Markdown, CSV. That for a page is report/page/template.h. Each
// escapes the cells for itself. Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "results/stats/spread.h"

namespace ucas {

// Numbers as readers see them: what every table and every sentence about results prints. An unknown number is "-".
// Threads: any; pure functions.

// Percent with one digit for shares, three significant digits otherwise: "84.4", "18.1", "0.693".
std::string number_text(double value, bool share);
std::string bounds_text(const Figure& figure, bool share);  // "[81.7, 84.3]", "" without bounds
// Percentage points of a share with a sign: "+1.7", "-0.04", "0"; another quantity in its own unit.
std::string change_text(double value, bool share);
std::string interval_text(const Figure& change, bool share);  // "-2.4 to +0.1", "" without bounds
std::string p_text(double p);                                 // "0.012", "< 0.001"
std::string measure_text(double value);                       // of any size: "0.693", "123.4", "1.2e-05"

std::string decimal_text(double value, int digits);  // "0.693"
std::string signed_text(double value, int digits);   // "+0.693", "-0.693", "0.000"
std::string share_text(double share);                // "12.5 %"
std::string share_text(int64_t part, int64_t of);    // the same of two counts; "-" of none

// Words, or a number with what is known of it.
struct Cell {
  enum class Kind : uint8_t { words, value, change, decimal, count, p };

  Cell() = default;
  Cell(std::string text) : words(std::move(text)) {}
  Cell(const char* text) : words(text) {}

  // Numbers. Shares are printed in percent.
  static Cell value(double number, bool share) { return Cell(Kind::value, {number}, share); }
  // "84.4 +- 1.0"
  static Cell mean(const Figure& figure, double deviation, bool share) {
    return Cell(Kind::value, figure, share).with(&Cell::deviation, deviation);
  }
  // "84.4 [81.7, 87.0]"
  static Cell figure(const Figure& figure, bool share = true) {
    return Cell(Kind::value, figure, share).with(&Cell::bounded, figure.bounded());
  }
  static Cell change(double number, bool share) { return Cell(Kind::change, {number}, share); }
  static Cell decimal(double number, int digits, bool with_sign = false) {
    return Cell(Kind::decimal, {number}).with(&Cell::digits, digits).with(&Cell::with_sign, with_sign);
  }
  static Cell count(int64_t number) { return Cell(Kind::count, {static_cast<double>(number)}); }  // "1,234"
  static Cell p(double number) { return Cell(Kind::p, {number}); }
  static Cell unknown() { return value(kUnknown, false); }
  // As an article has it; the number is for programs.
  static Cell printed(std::string text, double number) {
    return Cell(std::move(text)).with(&Cell::number, Figure{number});
  }

  bool is_number() const { return kind != Kind::words; }
  bool known() const { return !is_number() || number.known(); }
  std::string spread() const;  // the deviation alone; "" if unknown
  // For readers, in one line: before, the number with its deviation and bounds or the words, after.
  std::string text() const;
  std::string number_only() const;  // "84.4", "-"; of words: the words
  std::string exact() const;        // for programs: all digits, "" if unknown; of words: the words

  Kind kind = Kind::words;
  bool share = false;
  bool bounded = false;  // its bounds are shown
  bool with_sign = false;
  int digits = 0;  // of a decimal
  Figure number;
  double deviation = kUnknown;
  std::string words, before = "", after = "";  // ">= ", "*"

  // What a page shows besides.
  bool strong = false;
  bool code = false, markup = false;  // what the words are
  std::string unit = "", below = "";  // in small type after it, below it
  std::string about = "";             // shown where the pointer rests on it
  std::string mark = "";              // class of the coloured mark before it: "g1", "p3"
  template <class Part>
  Cell with(Part Cell::* part, std::type_identity_t<Part> value) && {
    this->*part = std::move(value);
    return std::move(*this);
  }

 private:
  Cell(Kind of, const Figure& figure, bool in_percent = false) : kind(of), share(in_percent), number(figure) {}
};

struct Table {
  struct Row {
    std::vector<Cell> cells;
    bool begins = false;    // a group of rows: a page has a body of its own for it
    std::string kind = "";  // class of the row on a page
    Row() = default;
    Row(std::initializer_list<Cell> list) : cells(list) {}
    Row(std::vector<Cell> list) : cells(std::move(list)) {}
  };

  std::vector<Cell> head;  // may be empty for text
  std::vector<Row> rows = {};
  std::string align = "lr";             // of the columns, l or r; the last letter goes for all further ones
  std::string caption = "";             // above
  std::vector<std::string> notes = {};  // below, a line each
  std::string kind = "";                // classes on a page

  void add(std::vector<Cell> cells) { rows.emplace_back(std::move(cells)); }

  // Columns of one width, two spaces between. In lines of at most `width` characters (0 = of any length) the columns
  // that do not fit go into blocks below, each next to the first column again.
  std::string text(const std::string& indent = "", size_t width = 0) const;
  std::string markdown() const;
  std::string csv() const;  // numbers as they are, without caption and notes
};

// Text of files and users as a cell: control bytes shown, cut to a few hundred bytes, nothing that the format acts on.
std::string markdown_text(const std::string& text);
std::string csv_text(const std::string& text);  // with its quotes

}  // namespace ucas
