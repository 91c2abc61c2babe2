#include "report/figure_section.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/str.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/svg_canvas.h"

namespace ucas {

namespace {

constexpr size_t kMostOfAKind = 6, kMostData = 3, kMostNumbers = 20000;  // bytes of a table of numbers

bool numeric(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

// Minus and plus-minus signs as print has them.
std::string typeset(const std::string& html) {
  std::string out;
  for (size_t i = 0; i < html.size(); ++i) {
    bool number = i > 0 && html[i - 1] == ' ' && i + 1 < html.size();
    if (number && html.compare(i, 3, "+- ") == 0) {
      out += "&#177; ";
      i += 2;
    } else if (number && html[i] == '-' && html[i + 1] >= '0' && html[i + 1] <= '9') {
      out += "&#8722;";
    } else {
      out += html[i];
    }
  }
  return out;
}

std::string figure_html(const StudyFigure& figure, const std::string& data) {
  std::string numbers;
  if (!figure.csv.empty() && figure.csv.size() <= kMostNumbers) {
    numbers = str("<details><summary>numbers</summary><pre class=\"text\">", model_text(figure.csv, kMostNumbers),
                  "</pre></details>");
  }
  return str("<figure class=\"drawn\" data-name=\"", html_text(file_word(figure.name + " " + data)),
             "\"><figcaption><h4>", html_text(figure.title),
             "</h4><button type=\"button\" class=\"save\" title=\"save this figure as SVG\">save</button><p>",
             typeset(html_text(figure.note)), "</p></figcaption><div class=\"drawing\">", svg_for_page(figure.svg),
             "</div>", numbers, "</figure>");
}

}  // namespace

std::vector<std::string> varied_settings(const std::vector<RunGroup>& groups) {
  std::map<std::string, std::vector<const RunGroup*>> by_method;
  for (const RunGroup& group : groups) {
    if (group.trained && !group.runs[0]->method.empty()) by_method[group.runs[0]->method].push_back(&group);
  }
  for (const auto& [method, own] : by_method) {
    if (own.size() < 3) continue;
    std::map<std::string, std::set<std::string>> values;
    for (const RunGroup* group : own) {
      for (const auto& [key, value] : group->runs[0]->config) {
        if (!is_incidental(key)) values[key].insert(value);
      }
    }
    std::vector<std::string> axes;
    bool clean = true;
    for (const auto& [key, seen] : values) {
      if (seen.size() < 2) continue;
      clean &= std::ranges::all_of(seen, numeric);
      axes.push_back(key);
    }
    if (clean && !axes.empty() && axes.size() <= 2) return axes;
  }
  return {};
}

std::string figures_html(const std::vector<RunGroup>& groups) {
  std::string out;
  std::vector<std::string> all = evaluated_data(groups), axes = varied_settings(groups);
  for (size_t d = 0; d < std::min(all.size(), kMostData); ++d) {
    for (FigureKind kind : {FigureKind::confidence, FigureKind::sensitivity, FigureKind::reliability}) {
      FigureRequest request;
      request.kind = kind;
      request.data = all[d];
      request.axes = axes;
      std::string lacking;
      std::vector<StudyFigure> figures = figures_of({groups, request, lacking});
      for (size_t i = 0; i < std::min(figures.size(), kMostOfAKind); ++i) out += figure_html(figures[i], all[d]);
      if (figures.size() > kMostOfAKind) {
        out += str("<p class=\"note\">", figures.size() - kMostOfAKind,
                   " more of this kind are not on the page: <code>ucas study</code> writes all of them.</p>");
      }
    }
  }
  return out.empty() ? out : str("<div class=\"drawings\">", out, "</div>");
}

}  // namespace ucas
