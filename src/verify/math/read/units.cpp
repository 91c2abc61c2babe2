#include "verify/math/read/units.h"

#include <algorithm>

#include "base/str.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/unit_table.h"

namespace ucas::math {

namespace {

// Splits letters into words; false where something else than words, spaces, '.', '/' and '-' is met.
template <class Take>
bool words_and_slashes(std::string_view text, Take take) {
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end > i) {
      if (!take(text.substr(i, end - i))) return false;
      i = end;
    } else if (text[i] == ' ' || text[i] == '.' || text[i] == '/' || text[i] == '-') {
      if (text[i] == '/' && !take("/")) return false;
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

void add_word(std::string_view word, std::string& unit) {
  std::string text = word.size() > 2 ? lower_case(word) : std::string(word);  // "m" and "M" differ
  if (text == "percent") text = "%";
  if (text == "feet") text = "foot";
  if (text == "inches") text = "inch";
  if (text.size() > 3 && text.back() == 's') text.pop_back();
  unit += text;
}

bool take_exponent(std::string_view& text, std::string& unit) {
  for (std::string_view form : {std::string_view("^2"), std::string_view("^3"), std::string_view("^{2}"),
                                std::string_view("^{3}"), std::string_view("^{-1}"), std::string_view("^{-2}")}) {
    if (!text.starts_with(form)) continue;
    unit += "^";
    for (char c : form) {
      if (c == '-' || (c >= '0' && c <= '9')) unit.push_back(c);
    }
    text.remove_prefix(form.size());
    return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> read_unit(std::string_view text) {
  std::string unit;
  bool formula = false;  // inside \text{} units: exponents and quotients may follow
  for (text = trim(text); !text.empty(); text = trim(text)) {
    if (text.starts_with("%")) {
      unit += "%";
      text.remove_prefix(1);
    } else if (text.starts_with("^\\circ") || text.starts_with("^{\\circ}") || text.starts_with("^ \\circ")) {
      unit += "degree";
      text.remove_prefix(text.find("circ") + (text[1] == '{' ? 5 : 4));
    } else if (text.starts_with("\\text{")) {
      size_t close = text.find('}');
      if (close == std::string_view::npos) return std::nullopt;
      bool words = words_and_slashes(text.substr(6, close - 6), [&](std::string_view word) {
        if (word != "/" && find_unit(word) == nullptr) return false;
        add_word(word, unit);
        return true;
      });
      if (!words) return std::nullopt;
      text.remove_prefix(close + 1);
      formula = true;
    } else if (formula && take_exponent(text, unit)) {
      continue;
    } else if (formula && (text[0] == '/' || text.starts_with("\\cdot"))) {
      if (text[0] == '/') unit += "/";
      text.remove_prefix(text[0] == '/' ? 1 : 5);
    } else if (is_letter(text[0])) {
      size_t end = 0;
      while (end < text.size() && is_letter(text[end])) ++end;
      if (end < 3 || find_unit(text.substr(0, end)) == nullptr) return std::nullopt;
      add_word(text.substr(0, end), unit);
      text.remove_prefix(end);
      take_exponent(text, unit);
    } else {
      return std::nullopt;
    }
  }
  return unit;
}

}  // namespace ucas::math
