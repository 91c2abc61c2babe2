// One SVG document, written shape by shape: the same shapes give the same bytes. Colours are presentation attributes
// (any converter draws them) that a style sheet inside the document turns over on a dark ground; the report takes the
// body alone and lets its own theme colour the same classes. No ids, so that many fit one page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ucas {

// 0 .. 7 are the groups of the report; the others are for axes and text.
enum SvgColor : size_t { kGroupColors = 8, kInk = 8, kSoft, kFaint, kLine, kGrid, kPaper };

enum class TextAnchor { start, middle, end };

class SvgCanvas {
 public:
  SvgCanvas(double width, double height, std::string title)
      : width_(width), height_(height), title_(std::move(title)) {}

  struct Stroke {
    size_t color = kInk;
    double width = 1;
    const char* dashes = "";  // as stroke-dasharray
    double opacity = 1;
  };
  void line(double x0, double y0, double x1, double y1, const Stroke& stroke);
  void polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke);
  void polygon(const std::vector<std::pair<double, double>>& points, size_t color, double opacity);
  void rectangle(double x, double y, double width, double height, size_t color, double opacity = 1, double round = 0);
  // `about` is shown where the pointer rests on it. A ring is not filled.
  void circle(double x, double y, double radius, size_t color, double opacity = 1, const std::string& about = "",
              bool ring = false);
  struct Font {
    double size = 11;
    size_t color = kSoft;
    TextAnchor anchor = TextAnchor::start;
    bool bold = false;
    bool upright = false;  // turned to read from bottom to top
  };
  void text(double x, double y, std::string_view text, const Font& font);

  double width() const { return width_; }
  double height() const { return height_; }
  void grow(double height) { height_ = height; }
  std::string document() const;

 private:
  double width_, height_;
  std::string title_, body_;
};

// The document without its style sheet, for a page that has rules for the classes (assets/figures.css).
std::string svg_for_page(std::string document);

// Width of a text in the common sans-serif faces, in the unit of `size`; a little generous.
double text_width(std::string_view text, double size);
// A coordinate: at most two decimals, no needless zeros, never "-0".
std::string svg_number(double value);
// The text, cut with "..." so that it is at most `width` wide.
std::string fit_text(const std::string& text, double size, double width);

}  // namespace ucas
