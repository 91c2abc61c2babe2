// numeric: the answer is a number, right within a tolerance. For data whose right answers are measured or rounded; the
// grader of mathematics is exact. Row in registry.h.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/str.h"
#include "verify/math/read/parser.h"
#include "verify/registry.h"
#include "verify/text/text_graders.h"

namespace ucas {

namespace {

// A plain number (digits, sign, one point, thousands separators) without its commas; nullopt: it is none.
std::optional<std::string> plain_number(std::string_view answer) {
  std::string_view rest;
  std::string number = math::take_number(answer, rest);
  if (number.empty() || !trim(rest).empty()) return std::nullopt;
  return number == "." ? "0" : number;
}

// A plain number ("-1,234.5"), one with an exponent ("6.02e23"), a percentage ("12.5%", "12.5\%") or a quotient of two
// integers; dollar signs around it are left out. Finite.
std::optional<double> number_in(std::string_view text) {
  text = trim(text);
  while (!text.empty() && (text.front() == '$' || text.front() == ' ')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '$' || text.back() == '.' || text.back() == ' ')) text.remove_suffix(1);
  double scale = 1;
  if (text.ends_with('%')) {
    text.remove_suffix(text.ends_with("\\%") ? 2 : 1);
    scale = 0.01;
  }
  const auto read = [](std::string_view part) -> std::optional<double> {
    const size_t e = part.find_first_of("eE");
    const auto mantissa = plain_number(part.substr(0, e));
    if (!mantissa) return std::nullopt;
    std::string exponent = e == std::string_view::npos ? "" : std::string(part.substr(e + 1));
    if (e != std::string_view::npos) {
      if (exponent.starts_with('+')) exponent.erase(0, 1);
      const size_t digits = exponent.starts_with('-') ? 1 : 0;
      if (exponent.size() == digits || exponent.size() > digits + 4 ||
          exponent.find_first_not_of("0123456789", digits) != std::string::npos) {
        return std::nullopt;
      }
    }
    const std::string whole = exponent.empty() ? *mantissa : str(*mantissa, "e", exponent);
    double value = 0;
    const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
    if (error != std::errc() || end != whole.data() + whole.size() || !std::isfinite(value)) return std::nullopt;
    return value;
  };
  std::optional<double> value;
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    const auto above = read(trim(text.substr(0, slash))), below = read(trim(text.substr(slash + 1)));
    if (above && below && *below != 0) value = *above / *below;
  } else {
    value = read(text);
  }
  if (value) *value *= scale;
  return value && std::isfinite(*value) ? value : std::nullopt;
}

class NumericGrader final : public EachAlone {
 public:
  explicit NumericGrader(const GraderSetup& setup) : extract_(setup.extract), tolerance_(setup.tolerance) {}

  // Two answers are one where they are the same number; within the tolerance of each other they may still be two.
  void classify(std::span<Verdict> group) const override {
    std::map<double, int32_t> numbers;
    number_classes(group, [&](const std::string& answer, int32_t next) {
      const auto value = number_in(answer);
      return value ? numbers.emplace(*value, next).first->second : -1;
    });
  }

  void check_gold(const std::vector<std::string>& gold, const std::string& where) const override {
    for (const std::string& one : gold) {
      if (number_in(one)) continue;
      throw Error(ErrorKind::data_line,
                  str(where, ": the answer \"", printable(one, 60), "\" is no number; grader = \"numeric\"",
                      " reads 12, -1,234.5, 6e23, 12.5% or 3/4"));
    }
  }

 private:
  Verdict grade_one(const Answer& answer) const override {
    Verdict verdict;
    const size_t from = answer.response.size() - std::min(answer.response.size(), kResponseLimit);
    const math::Extracted found = math::extract_answer(answer.response.substr(from), answer.extract.value_or(extract_));
    verdict.reason = found.how;
    if (!found.found) return verdict;
    verdict.answer = std::string(found.answer.substr(0, kAnswerLimit));
    const auto value = number_in(found.answer);
    verdict.reason = "not a number";
    if (!value) return verdict;
    verdict.decide(VerdictKind::unequal, "another number");
    if (answer.gold == nullptr) return verdict;
    for (const std::string& gold : *answer.gold) {
      const auto right = number_in(gold);
      if (!right || std::abs(*value - *right) > tolerance_ * std::max(std::abs(*right), std::abs(*value))) continue;
      verdict.decide(VerdictKind::equal, "a number within the tolerance");
      break;
    }
    return verdict;
  }

  Extract extract_;
  double tolerance_;  // relative to the greater of the two, as math.isclose
};

}  // namespace

std::unique_ptr<Grader> make_numeric_grader(const GraderSetup& setup) { return std::make_unique<NumericGrader>(setup); }

}  // namespace ucas
