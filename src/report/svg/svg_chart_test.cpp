#include "report/svg/svg_chart.h"

#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/str.h"

namespace ucas {
namespace {

size_t occurrences(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(svg_chart, ticks_are_round_and_cover_the_data) {
  Ticks t = round_ticks(0.03, 0.94, 5);
  EXPECT_EQ(t.at.front(), 0);
  EXPECT_DOUBLE_EQ(t.at.back(), 1);
  EXPECT_DOUBLE_EQ(t.step, 0.2);
  EXPECT_DOUBLE_EQ(round_ticks(0, 1400, 4).step, 500);
  EXPECT_EQ(round_ticks(3, 3, 4).at, std::vector<double>{3});
}

TEST(svg_chart, tick_texts_have_the_digits_of_their_step) {
  EXPECT_EQ(tick_text(0.25, 0.25, false), "0.25");
  EXPECT_EQ(tick_text(0.5, 0.25, false), "0.50");
  EXPECT_EQ(tick_text(2, 1, false), "2");
  EXPECT_EQ(tick_text(-1.5, 0.5, false),
            "\xe2\x88\x92"
            "1.5");
  EXPECT_EQ(tick_text(0.025, 0.025, true), "2.5 %");
  EXPECT_EQ(tick_text(12000, 4000, false), "12,000");
  EXPECT_EQ(tick_text(0, 0.1, true), "0 %");
}

Chart two_curves() {
  Chart chart;
  chart.title = "two";
  chart.x.title = "step";
  for (double shift : {0.0, 0.001}) {
    ChartSeries s;
    s.name = shift > 0 ? "second" : "first";
    s.color = shift > 0 ? 2 : 1;
    for (int i = 0; i < 5; ++i) s.marks.push_back({double(i), i * 0.1 + shift, i * 0.1 - 0.05, i * 0.1 + 0.05, ""});
    chart.series.push_back(s);
  }
  return chart;
}

TEST(svg_chart, curves_have_bands_and_labels_that_do_not_lie_on_each_other) {
  std::string svg = svg_of(two_curves());
  EXPECT_EQ(occurrences(svg, "<polyline"), 2u);
  EXPECT_EQ(occurrences(svg, "<polygon"), 2u);
  auto y_of = [&](const std::string& label) {
    size_t end = svg.find(">" + label + "<"), begin = svg.rfind("y=\"", end);
    return std::stod(svg.substr(begin + 3));
  };
  EXPECT_GE(std::abs(y_of("first") - y_of("second")), 12);
  EXPECT_EQ(svg, svg_of(two_curves()));
}

TEST(svg_chart, the_drawing_is_the_one_that_was_looked_at) {
  EXPECT_EQ(svg_of(two_curves()), read_file(UCAS_SOURCE_DIR "/tests/goldens/report/two_curves.svg"))
      << "look at the new drawing before it takes the old one's place";
}

TEST(svg_chart, whatever_a_label_says_stays_text) {
  Chart chart = two_curves();
  chart.series[0].name = "</text><script>alert(1)</script>";
  chart.title = "\"><script>";
  chart.series[1].dots = true;
  chart.series[1].marks[0].about = "</title><script>\xe2\x80\xae";
  std::string svg = svg_of(chart);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("\xe2\x80\xae"), std::string::npos);
}

TEST(svg_chart, nothing_known_draws_axes_and_no_curve) {
  Chart chart = two_curves();
  for (ChartSeries& s : chart.series) {
    for (ChartMark& m : s.marks) m.y = m.low = m.high = kUnknown;
  }
  std::string svg = svg_of(chart);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(occurrences(svg, "<polyline"), 0u);
}

TEST(svg_chart, numbers_of_any_size_make_a_drawing) {
  for (double size : {1e308, 1e-308, 5e-324, 9e15}) {
    for (double shift : {0.0, 1.0}) {
      Chart chart = two_curves();
      for (ChartSeries& s : chart.series) {
        for (ChartMark& m : s.marks) m = {m.x * size, m.y * size, -size, size + shift, ""};
      }
      std::string svg = svg_of(chart);
      EXPECT_EQ(svg.find("nan"), std::string::npos);
      EXPECT_EQ(svg.find("inf"), std::string::npos);
      EXPECT_LT(svg.size(), 20000u);
    }
  }
  EXPECT_EQ(round_ticks(-1e308, 1e308, 5).at.size(), 2u);
  EXPECT_EQ(round_ticks(1, 1 + 1e-15, 5).at.size(), 2u);
}

TEST(svg_chart, no_ids_so_that_many_stand_in_one_page) {
  EXPECT_EQ(svg_of(two_curves()).find(" id="), std::string::npos);
}

TEST(svg_chart, for_a_page_the_style_sheet_is_left_out) {
  std::string svg = svg_of(two_curves()), body = svg_for_page(svg);
  EXPECT_NE(svg.find("prefers-color-scheme"), std::string::npos);
  EXPECT_EQ(body.find("<style"), std::string::npos);
  EXPECT_NE(body.find("<polyline"), std::string::npos);
}

TEST(svg_chart, a_forest_plot_has_dots_for_what_is_significant_and_rings_for_what_is_not) {
  BarChart forest;
  forest.points = true;
  forest.bars = {{"a", "+1", "p < 0.001", 1, 1, 0.5, 1.5, {}}, {"b", "-1", "p = 0.4", 2, -1, -2.5, 0.5, {}}};
  forest.bars[1].hollow = true;
  const std::string svg = svg_of(forest);
  EXPECT_EQ(occurrences(svg, "<rect"), 0u) << "a forest plot has no bars";
  EXPECT_EQ(occurrences(svg, "r=\"4.6\" class=\"f-g1\""), 1u) << svg;
  EXPECT_EQ(occurrences(svg, "r=\"4.6\" class=\"s-g2\""), 1u) << svg;
  EXPECT_EQ(occurrences(svg, "class=\"s-faint\""), 1u) << "one line at zero: " << svg;
}

TEST(svg_chart, a_text_is_cut_between_characters) {
  std::string cut = fit_text("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 12, 40);
  EXPECT_TRUE(valid_utf8(cut));
  EXPECT_TRUE(cut.ends_with("..."));
}

}  // namespace
}  // namespace ucas
