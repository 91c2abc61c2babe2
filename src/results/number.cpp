#include "results/number.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/str.h"

namespace ucas {

std::string number_text(double value, bool share) {
  if (std::isnan(value)) return "-";
  const double size = std::fabs(value);
  const int digits = share || (size >= 10 && size < 100) ? 1 : size >= 100 ? 0 : size >= 1 ? 2 : 3;
  const std::string text = fixed(share ? 100 * value : value, digits);
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return zero && text[0] == '-' ? text.substr(1) : text;  // no minus before a zero
}

std::string bounds_text(const Figure& f, bool share) {
  return f.bounded() ? str("[", number_text(f.low, share), ", ", number_text(f.high, share), "]") : "";
}

std::string change_text(double value, bool share) {
  if (std::isnan(value)) return "-";
  std::string text = number_text(std::fabs(value), share);
  if (share && text == "0.0") text = fixed(100 * std::fabs(value), 2);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return zero ? "0" : str(value < 0 ? "-" : "+", text);
}

std::string interval_text(const Figure& change, bool share) {
  return change.bounded() ? str(change_text(change.low, share), " to ", change_text(change.high, share)) : "";
}

std::string p_text(double p) { return std::isnan(p) ? "-" : p < 0.001 ? "< 0.001" : fixed(p, 3); }

std::string measure_text(double value) {
  const double size = std::fabs(value);
  if (!std::isfinite(value) || size == 0) return size == 0 ? "0" : "-";
  if (size >= 1e-3 && size < 1e5) return fixed(value, size >= 100 ? 1 : size >= 1 ? 2 : 3);
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

std::string decimal_text(double value, int digits) { return std::isfinite(value) ? fixed(value, digits) : "-"; }

std::string signed_text(double value, int digits) {
  return (std::isfinite(value) && value > 0 ? "+" : "") + decimal_text(value, digits);
}

std::string share_text(double share) { return std::isfinite(share) ? percent(share) : "-"; }

std::string share_text(int64_t part, int64_t of) {
  return share_text(static_cast<double>(part) / static_cast<double>(of));
}

OrderedJson json_of(const Figure& f) { return {{"value", f.value}, {"low", f.low}, {"high", f.high}}; }

}  // namespace ucas
