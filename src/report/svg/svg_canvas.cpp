#include "report/svg/svg_canvas.h"

#include <array>
#include <cmath>

#include "base/str.h"
#include "report/escape.h"

namespace ucas {

namespace {

struct ColorRow {
  const char* name;
  const char* light;
  const char* dark;
};
// As --g0 .. --g7 and the grays of assets/report.css.
constexpr std::array<ColorRow, 14> kColors = {{{"g0", "#7d828c", "#9aa0ab"},
                                               {"g1", "#2c62d6", "#6c9bff"},
                                               {"g2", "#d9620b", "#ff9348"},
                                               {"g3", "#0f8a74", "#36c5a8"},
                                               {"g4", "#9a3fc0", "#cc86ea"},
                                               {"g5", "#b58900", "#dcb72f"},
                                               {"g6", "#c2255c", "#f2709c"},
                                               {"g7", "#0b7fab", "#46b7e3"},
                                               {"ink", "#1b1d21", "#e7e8ea"},
                                               {"soft", "#5c626d", "#a2a8b3"},
                                               {"faint", "#8b919c", "#777d88"},
                                               {"line", "#c9ccd2", "#454a53"},
                                               {"grid", "#ebecee", "#2a2d33"},
                                               {"paper", "#ffffff", "#131417"}}};
constexpr const char* kNamespace = " xmlns=\"http://www.w3.org/2000/svg\"";
constexpr const char* kStyleBegin = "<style>";
constexpr const char* kStyleEnd = "</style>";

std::string fill(size_t color) {
  return str(" class=\"f-", kColors[color].name, "\" fill=\"", kColors[color].light, "\"");
}

std::string stroked(const SvgCanvas::Stroke& s) {
  std::string out = str(" class=\"s-", kColors[s.color].name, "\" fill=\"none\" stroke=\"", kColors[s.color].light,
                        "\" stroke-width=\"", svg_number(s.width), "\"");
  if (*s.dashes) out += str(" stroke-dasharray=\"", s.dashes, "\"");
  if (s.opacity < 1) out += str(" stroke-opacity=\"", svg_number(s.opacity), "\"");
  return out;
}

std::string opaque(double opacity) {
  return opacity < 1 ? str(" fill-opacity=\"", svg_number(opacity), "\"") : std::string();
}

std::string joined(const std::vector<std::pair<double, double>>& points) {
  std::string out;
  for (auto [x, y] : points) out += str(out.empty() ? "" : " ", svg_number(x), ",", svg_number(y));
  return out;
}

std::string style_sheet() {
  std::string out = str(kStyleBegin, "@media (prefers-color-scheme: dark) {");
  for (const ColorRow& row : kColors) {
    out += str(" .f-", row.name, " { fill: ", row.dark, " } .s-", row.name, " { stroke: ", row.dark, " }");
  }
  return out + " }" + kStyleEnd;
}

}  // namespace

std::string svg_number(double value) {
  if (!(std::fabs(value) < 1e7)) return "0";  // numbers of a file may be anything; an SVG has coordinates
  std::string text = fixed(value, 2);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text, double size) {
  double ems = 0;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xc0) {
      ems += byte >= 0xe2 ? 1.0 : 0.62;
    } else if (byte >= 0x80) {
      continue;  // the rest of a character
    } else if (std::string_view("iljI.,:;'|![]()/ ft").find(c) != std::string_view::npos) {
      ems += 0.32;
    } else if (std::string_view("mwMW@%").find(c) != std::string_view::npos) {
      ems += 0.9;
    } else {
      ems += c >= 'A' && c <= 'Z' ? 0.7 : 0.58;
    }
  }
  return ems * size;
}

std::string fit_text(const std::string& text, double size, double width) {
  if (text_width(text, size) <= width) return text;
  std::string cut = text;
  while (!cut.empty() && text_width(cut + "...", size) > width) {
    do {
      cut.pop_back();
    } while (!cut.empty() && !valid_utf8(cut) && valid_utf8(text));
  }
  return cut + "...";
}

void SvgCanvas::line(double x0, double y0, double x1, double y1, const Stroke& stroke) {
  body_ += str("<line x1=\"", svg_number(x0), "\" y1=\"", svg_number(y0), "\" x2=\"", svg_number(x1), "\" y2=\"",
               svg_number(y1), "\"", stroked(stroke), "/>\n");
}

void SvgCanvas::polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke) {
  body_ += str("<polyline points=\"", joined(points), "\"", stroked(stroke),
               " stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n");
}

void SvgCanvas::polygon(const std::vector<std::pair<double, double>>& points, size_t color, double opacity) {
  body_ += str("<polygon points=\"", joined(points), "\"", fill(color), opaque(opacity), "/>\n");
}

void SvgCanvas::rectangle(double x, double y, double width, double height, size_t color, double opacity, double round) {
  body_ += str("<rect x=\"", svg_number(x), "\" y=\"", svg_number(y), "\" width=\"", svg_number(width), "\" height=\"",
               svg_number(height), "\"", round > 0 ? str(" rx=\"", svg_number(round), "\"") : "", fill(color),
               opaque(opacity), "/>\n");
}

void SvgCanvas::circle(double x, double y, double radius, size_t color, double opacity, const std::string& about,
                       bool ring) {
  std::string paint = ring ? stroked({color, 1.4, "", opacity}) : fill(color) + opaque(opacity);
  body_ += str("<circle cx=\"", svg_number(x), "\" cy=\"", svg_number(y), "\" r=\"", svg_number(radius), "\"", paint,
               about.empty() ? std::string("/>\n")
                             : str("><title>", html_text(visible_text(about, 200)), "</title></circle>\n"));
}

void SvgCanvas::text(double x, double y, std::string_view text, const Font& font) {
  constexpr const char* kAnchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  std::string turned = font.upright ? str(" transform=\"rotate(-90 ", svg_number(x), " ", svg_number(y), ")\"") : "";
  body_ += str("<text x=\"", svg_number(x), "\" y=\"", svg_number(y), "\" font-size=\"", svg_number(font.size), "\"",
               kAnchors[static_cast<int>(font.anchor)], font.bold ? " font-weight=\"600\"" : "", turned,
               fill(font.color), ">", html_text(text), "</text>\n");
}

std::string SvgCanvas::document() const {
  return str("<svg", kNamespace, " viewBox=\"0 0 ", svg_number(width_), " ", svg_number(height_), "\" width=\"",
             svg_number(width_), "\" height=\"", svg_number(height_), "\" role=\"img\" aria-label=\"",
             html_text(title_),
             "\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif\" "
             "style=\"font-variant-numeric: tabular-nums\">\n",
             style_sheet(), "\n", body_, "</svg>\n");
}

std::string svg_for_page(std::string document) {
  const size_t begin = document.find(kStyleBegin), end = document.find(kStyleEnd);
  if (begin != std::string::npos) document.erase(begin, end + std::string_view(kStyleEnd).size() - begin);
  return document;
}

}  // namespace ucas
