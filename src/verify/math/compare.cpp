#include "verify/math/compare.h"

#include <algorithm>
#include <iterator>

#include "base/str.h"
#include "verify/math/extract.h"
#include "verify/math/normalize.h"
#include "verify/math/units.h"

namespace ucas {

namespace {

constexpr int64_t kNestingLimit = 200;

int64_t nesting(std::string_view text) {
  int64_t depth = 0, deepest = 0;
  for (char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

constexpr std::string_view kGreek[] = {"\\alpha", "\\beta", "\\gamma", "\\delta", "\\epsilon", "\\theta",  "\\lambda",
                                       "\\mu",    "\\rho",  "\\sigma", "\\tau",   "\\phi",     "\\varphi", "\\omega"};

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// x, x_1, x_{10}, f(x), \theta. Anything else before "=" is part of the answer: "\not" turns the meaning around.
bool is_variable(std::string_view name) {
  if (std::find(std::begin(kGreek), std::end(kGreek), name) != std::end(kGreek)) return true;
  if (name.empty() || name.size() > 6 || !is_alphanumeric(name[0]) || name[0] <= '9') return false;
  std::string_view tail = name.substr(1);
  if (tail.starts_with("_{") && tail.ends_with("}")) {
    tail = tail.substr(2, tail.size() - 3);
  } else if (tail.starts_with("(") && tail.ends_with(")")) {
    tail = tail.substr(1, tail.size() - 2);
  } else if (tail.size() == 2 && tail[0] == '_') {
    tail = tail.substr(1);
  } else if (!tail.empty()) {
    return false;
  }
  return std::all_of(tail.begin(), tail.end(), is_alphanumeric);
}

// Splits "x = 5" at its only sign of equality.
std::string_view take_variable(std::string_view text, std::string& variable) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos || text.find('=', equals + 1) != std::string_view::npos) return text;
  std::string_view name = trim(text.substr(0, equals)), value = trim(text.substr(equals + 1));
  if (!is_variable(name) || value.empty()) return text;
  variable = text_key(name);
  return value;
}

bool is_percent(const MathAnswer& a) { return a.unit == "%"; }

bool at_least_one(const Rational& r) {
  auto places = static_cast<int64_t>(r.numerator.size()) + r.exponent - static_cast<int64_t>(r.denominator.size());
  return places > 0 || (places == 0 && r.numerator >= r.denominator);  // digits without leading zeros: text order
}

// One of the two carries a percent sign. 50 % counts for 50 and for 0.5, and either for 50 %; but 0.5 % is not 0.5.
std::optional<bool> equal_with_percent(const MathAnswer& gold, const MathAnswer& answer, Budget& budget) {
  Rational share = is_percent(gold) ? gold.number : answer.number;
  share.exponent -= 2;
  auto same_share = equal_numbers(share, is_percent(gold) ? answer.number : gold.number, budget);
  if (!same_share || *same_share) return same_share;
  if (is_percent(answer) && !at_least_one(gold.number)) return false;
  return equal_numbers(gold.number, answer.number, budget);
}

Comparison compare_numbers(const MathAnswer& gold, const MathAnswer& answer, Budget& budget) {
  std::optional<bool> equal;
  if (gold.unit == answer.unit) {
    equal = equal_numbers(gold.number, answer.number, budget);
  } else if (is_percent(gold) != is_percent(answer) && (gold.unit.empty() || answer.unit.empty())) {
    equal = equal_with_percent(gold, answer, budget);
  } else if (gold.unit.empty() || answer.unit.empty()) {
    equal = equal_numbers(gold.number, answer.number, budget);
  } else {
    return {VerdictKind::unequal, str("unit ", printable(answer.unit, 40), ", expected ", printable(gold.unit, 40))};
  }
  if (!equal) return {VerdictKind::over_budget, "the numbers are too long to compare"};
  return {*equal ? VerdictKind::equal : VerdictKind::unequal, *equal ? "the same number" : "a different number"};
}

}  // namespace

MathAnswer read_answer(std::string_view text) {
  MathAnswer answer;
  if (text.size() > kAnswerLimit) {
    answer.form = MathAnswer::Form::too_long;
    return answer;
  }
  if (trim(text).empty()) return answer;
  answer.form = MathAnswer::Form::broken;
  if (!well_formed(text) || nesting(text) > kNestingLimit) return answer;
  std::string normalized = normalize(text);
  std::string_view value = take_variable(normalized, answer.variable);
  answer.key = text_key(value);
  answer.form = answer.key.empty() ? MathAnswer::Form::empty : MathAnswer::Form::text;
  std::string_view rest;
  if (auto number = parse_number(value, rest)) {
    if (auto unit = read_unit(rest)) {
      answer.form = MathAnswer::Form::number;
      answer.number = std::move(*number);
      answer.unit = std::move(*unit);
    }
  }
  return answer;
}

Comparison compare_answers(const MathAnswer& gold, const MathAnswer& answer, Budget& budget) {
  using Form = MathAnswer::Form;
  if (gold.form == Form::empty) return {VerdictKind::unparseable, "the gold answer is empty"};
  if (gold.form == Form::broken) return {VerdictKind::unparseable, "the gold answer cannot be read"};
  if (gold.form == Form::too_long || answer.form == Form::too_long) {
    return {VerdictKind::over_budget, str("an answer of more than ", kAnswerLimit, " bytes")};
  }
  if (answer.form == Form::empty) return {VerdictKind::unparseable, "the answer is empty"};
  if (answer.form == Form::broken) {
    return {VerdictKind::unparseable, "unbalanced braces, deep nesting or bytes that are not text"};
  }
  bool both_named = !gold.variable.empty() && !answer.variable.empty();
  if (both_named && gold.variable != answer.variable) return {VerdictKind::unequal, "a value of another variable"};
  if (gold.form == Form::number && answer.form == Form::number) return compare_numbers(gold, answer, budget);
  if (gold.key == answer.key) return {VerdictKind::equal, "the same text"};
  if (gold.form == Form::number) return {VerdictKind::unparseable, "not a number in a form that can be read"};
  return {VerdictKind::unequal, "a different text"};
}

}  // namespace ucas
