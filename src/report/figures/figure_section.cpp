// Drawn figures of the report: the SVGs of report/study_figures.h inside the page, each with its numbers.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "report/escape.h"
#include "report/figures/figures.h"
#include "report/page/template.h"
#include "report/svg/svg_canvas.h"

namespace ucas {

namespace {

constexpr size_t kMostOfAKind = 6, kMostData = 3, kMostNumbers = 20000;  // bytes of a table of numbers

OrderedJson figure_values(const StudyFigure& figure, const std::string& data) {
  const bool small = figure.csv.size() <= kMostNumbers;
  return {{"file", file_word(figure.name + " " + data)},
          {"title", figure.title},
          {"metric", ""},
          {"note", typeset(figure.note)},
          {"svg", svg_for_page(figure.svg)},
          {"numbers", small ? model_text(figure.csv, kMostNumbers) : ""},
          {"left_out", ""}};
}

}  // namespace

std::string figures_html(const std::vector<RunGroup>& groups) {
  OrderedJson drawn = OrderedJson::array();
  const std::vector<std::string> all = evaluated_data(groups);
  for (size_t d = 0; d < std::min(all.size(), kMostData); ++d) {
    FigureRequest request;
    request.kind = FigureKind::confidence;
    request.data = all[d];
    std::vector<StudyFigure> figures;
    try {
      figures = figures_of({groups, request});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::empty) throw;
    }
    for (size_t i = 0; i < std::min(figures.size(), kMostOfAKind); ++i) {
      drawn.push_back(figure_values(figures[i], all[d]));
    }
    if (figures.size() > kMostOfAKind) drawn.push_back({{"svg", ""}, {"left_out", figures.size() - kMostOfAKind}});
  }
  return drawn.empty() ? "" : render("figures.html", {{"figures", drawn}});
}

}  // namespace ucas
