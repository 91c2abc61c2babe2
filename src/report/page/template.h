// HTML from the templates of report/assets (Mustache): {{x}} is text and is escaped (report/escape.h), {{{x}}} is HTML
// that was made safe before. A value is never read as a template. Threads: any; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"

namespace ucas {

std::string_view asset(const std::string& name);  // a file of report/assets

// "results.html" and its values. Empty texts, null and false make their section {{#x}} vanish; {{> y.html}} is the
// template y in the same place.
std::string render(const std::string& name, const OrderedJson& values);

// One cell of table.html. Texts; only `html` is markup.
struct PageCell {
  std::string strong = "", spread = "";  // "99.6", "0.5"
  std::string text = "", unit = "", code = "";
  std::string bounds = "";  // in small type below
  std::string html = "";
  std::string about = "";  // shown where the pointer rests on it
  std::string key = "";    // class of the coloured mark before it: "g1", "p3"
  bool quiet = false;      // nothing there: a dash
};

// A table of the page: the first cell of each row names it.
struct PageTable {
  std::string kind, caption;  // kind: classes of the table
  std::vector<PageCell> head;
  struct Row {
    std::vector<PageCell> cells;
    std::string kind = "";
    bool begins = false;  // a body of its own
  };
  std::vector<Row> rows;
};
std::string render(const PageTable& table);

}  // namespace ucas
