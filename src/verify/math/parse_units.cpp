// Units behind values: 5\text{ cm}^2, 3 m/s, 7 apples, \$3.50, 20\text{ degrees Celsius}.
#include <algorithm>
#include <utility>

#include "base/str.h"
#include "verify/math/parser_impl.h"

namespace ucas::math {

namespace {

struct Dimension {
  std::vector<std::pair<std::string, int>> powers;
  void add(std::string_view base, int power) {
    for (auto& [name, total] : powers) {
      if (name == base) {
        total += power;
        return;
      }
    }
    powers.emplace_back(base, power);
  }
  // "kg m^2 s^-2", in order of the names.
  std::string text() {
    std::sort(powers.begin(), powers.end());
    std::string out;
    for (const auto& [name, power] : powers) {
      if (power == 0) continue;
      if (!out.empty()) out.push_back(' ');
      out += name;
      if (power != 1) out += str("^", power);
    }
    return out;
  }
};

void add_dimension(Dimension& total, std::string_view text, int power) {
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t hat = part.find('^');
    int own = 1;
    if (hat != std::string_view::npos) {
      bool negative = part[hat + 1] == '-';
      own = part.back() - '0';
      if (negative) own = -own;
    }
    total.add(part.substr(0, hat), own * power);
  }
}

std::string singular(std::string_view word) {
  std::string out = lower_case(word);
  if (out.size() > 4 && out.ends_with("ies")) {
    out.replace(out.size() - 3, 3, "y");
  } else if (out.size() > 3 && out.back() == 's' && !out.ends_with("ss")) {
    out.pop_back();
  }
  return out;
}

}  // namespace

// The unit at `at_`, if one stands there, around `value`. Letters of a formula are units only where they cannot be
// variables: "5 cm", "60 mph", but 5m is a product; in \text{..} and \mathrm{..} every symbol counts.
NodeId Parser::with_unit(NodeId value, bool numeric) {
  if (value == kNoNode) return kNoNode;
  auto plain_word = [&](size_t i) { return peek(i).kind == TokenKind::word; };
  if (kind(value) == Kind::degree && plain_word(0)) {
    std::string word = lower_case(peek().text);
    bool celsius = word == "c" || word == "celsius", fahrenheit = word == "f" || word == "fahrenheit";
    if ((celsius || fahrenheit) && (peek().style != Style::math || word.size() > 1 || at_stop(1))) {
      advance();
      NodeId unit = make(Kind::unit, {number("1")}, UnitKind::known, celsius ? "celsius" : "fahrenheit");
      return make(Kind::quantity, {tree_.child(value, 0), unit});
    }
  }
  Dimension dimension;
  std::vector<NodeId> above, below;
  bool words = false, any = false;
  int sign = 1, pending = 1;
  while (!failed_) {
    const Token& token = peek();
    bool slash = is_symbol('/') || is_word("per");
    bool dot = is_symbol('*') || (is_symbol('-') && !token.space_before && token.style != Style::math);
    if (any && (slash || dot) && plain_word(1)) {
      bool textual = peek(1).style == Style::text || peek(1).style == Style::roman || is_word("per") ||
                     peek().style != Style::math;
      if (!textual && !(find_unit(peek(1).text) && peek(1).text.size() <= 4)) break;
      if (!find_unit(peek(1).text) && !slash) break;
      if (slash) sign = -1;
      advance();
      continue;
    }
    if (!any && is_word("per")) {  // \$5 per hour
      sign = -1;
      advance();
      any = true;
      continue;
    }
    // \mu and \Omega of units
    std::string name;
    bool micro =
        is_command(Meaning::greek) && token.text == "mu" && plain_word(1) && find_unit(peek(1).text) && numeric;
    bool ohm = is_command(Meaning::greek) && token.text == "Omega" && numeric;
    if (ohm) {
      name = "ohm";
    } else if (micro) {
      name = std::string(peek(1).text);
    } else if (token.kind == TokenKind::word && !token.grouped) {
      name = std::string(token.text);
    } else {
      break;
    }
    std::string low = lower_case(name);
    bool textual = token.style == Style::text || token.style == Style::roman || micro || ohm;
    if (is_connective() || (token.style == Style::bold && low.size() < 3)) break;
    if (!any && (low == "percent" || low == "pct" || low == "percentage")) {
      advance();
      return make(Kind::percent, {value});
    }
    if (!any && (low == "degrees" || low == "degree" || low == "deg")) {
      advance();
      return with_unit(kind(value) == Kind::degree ? value : make(Kind::degree, {value}), numeric);
    }
    if (!any && kind(value) == Kind::number && low == "radians") {
      advance();
      note("radians are the plain number");
      return value;
    }
    if (low == "square" || low == "sq" || low == "cubic" || low == "cu") {
      if (!plain_word(1) && !(is_symbol('.', 1) && plain_word(2))) break;
      if (low[0] == 'c' && !find_unit(peek(1).text) && !is_word("units", 1) && !is_word("unit", 1)) break;
      pending = low[0] == 's' ? 2 : 3;
      advance();
      take_symbol('.');
      continue;
    }
    bool foreign = std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    for (int power : {2, 3}) {  // square and cubic metres in Chinese
      std::string_view prefix = power == 2 ? "\u5e73\u65b9" : "\u7acb\u65b9";
      if (!name.starts_with(prefix) || !find_unit(std::string_view(name).substr(prefix.size()))) continue;
      pending = power;
      low = name.erase(0, prefix.size());
    }
    const Unit* unit = find_unit(name);
    bool short_ok = token.space_before || (kind(value) == Kind::number && name != "pi");
    bool formula_ok = (name.size() >= 4 && unit) || (numeric && (name.size() >= 3 || (name.size() == 2 && short_ok)));
    formula_ok |= foreign;
    if (any && !textual && unit && name.size() == 1 && sign < 0) formula_ok = true;  // km/h
    if (unit && !textual && !formula_ok) unit = nullptr;
    if (unit && textual && unit->name == "in" && !at_stop(1) && !is_symbol('^', 1) && !is_symbol('.', 1))
      unit = nullptr;
    bool word = unit == nullptr && !never_unit(low) && !find_function(name) && low.size() > 1 &&
                (textual || foreign || (numeric && low.size() >= 4 && !starts_factor(token)));
    if (word && std::all_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }) && !numeric) break;
    if (!unit && !word) {
      // "5 \text{ of the }": filler between words of a unit
      if (words && (low == "of" || low == "the" || low == "in")) {
        advance();
        continue;
      }
      break;
    }
    advance();
    if (micro) advance();
    take_symbol('.');
    int power = 1;
    if (is_symbol('^') && (peek(1).kind == TokenKind::number || is_symbol('{', 1) || is_symbol('-', 1))) {
      bool brace = is_symbol('{', 1);
      bool minus = is_symbol('-', 1 + brace);
      const Token& digit = peek(1 + brace + minus);
      bool closed = !brace || is_symbol('}', 2 + brace + minus);
      if (digit.kind != TokenKind::number || digit.text.size() != 1 || !closed) return fail("a power of a unit");
      power = (digit.text[0] - '0') * (minus ? -1 : 1);
      for (int k = 2 + 2 * brace + minus; k > 0; --k) advance();
    } else if (is_word("squared") || is_word("cubed")) {
      power = is_word("squared") ? 2 : 3;
      advance();
    }
    power *= sign * pending;
    pending = 1;
    any = true;
    if (word) {
      words = true;
      dimension.add(singular(name), power);
      continue;
    }
    add_dimension(dimension, unit->dimension, power);
    auto scale = [&](std::string_view digits, bool up) {
      if (digits == "1" || power == 0) return;
      NodeId part = number(digits);
      if (std::abs(power) != 1) part = make(Kind::power, {part, number(str(std::abs(power)))});
      (up == (power > 0) ? above : below).push_back(part);
    };
    scale(unit->numerator, true);
    scale(unit->denominator, false);
    if (micro) scale("1000000", false);
  }
  if (failed_ || !any) return failed_ ? kNoNode : value;
  auto product = [&](std::vector<NodeId>& parts) {
    return parts.empty() ? number("1") : parts.size() == 1 ? parts[0] : make(Kind::product, 0, parts);
  };
  NodeId factor = below.empty() ? product(above) : make(Kind::quotient, {product(above), product(below)});
  NodeId unit = make(Kind::unit, {factor}, words ? UnitKind::word : UnitKind::known, dimension.text());
  note("a unit");
  return make(Kind::quantity, {value, unit});
}

// 3 + 2\sqrt{5}\text{ cm}: the unit belongs to the whole sum unless a term before has its own. Also where differences
// of sets become set differences.
NodeId Parser::lift_unit(std::vector<NodeId>& terms) {
  if (terms.size() == 1) {
    NodeId inside = kind(terms[0]) == Kind::negate ? tree_.child(terms[0], 0) : kNoNode;
    if (inside == kNoNode || kind(inside) != Kind::quantity) return terms[0];
    NodeId value = make(Kind::negate, {tree_.child(inside, 0)});  // -5 cm is -5 with a unit
    return make(Kind::quantity, {value, tree_.child(inside, 1)});
  }
  auto set_like = [&](NodeId n) {
    Kind k = kind(n);
    return k == Kind::set || k == Kind::interval || k == Kind::set_builder || k == Kind::set_operation ||
           is_constant(n, Constant::reals) || is_constant(n, Constant::integers);
  };
  if (terms.size() == 2 && set_like(terms[0]) && kind(terms[1]) == Kind::negate && set_like(tree_.child(terms[1], 0))) {
    return make(Kind::set_operation, {terms[0], tree_.child(terms[1], 0)}, SetOperation::subtract);
  }
  auto own_unit = [&](NodeId n) {
    if (kind(n) == Kind::negate || kind(n) == Kind::plus_minus) n = tree_.child(n, 0);
    return kind(n) == Kind::quantity;
  };
  bool earlier = std::any_of(terms.begin(), terms.end() - 1, own_unit);
  if (earlier || !own_unit(terms.back())) return make(Kind::sum, 0, terms);
  NodeId last = terms.back(), unit = kNoNode;
  Kind sign = kind(last);
  if (sign == Kind::negate || sign == Kind::plus_minus) {
    uint8_t tag = tree_[last].tag;
    NodeId quantity = tree_.child(last, 0);
    unit = tree_.child(quantity, 1);
    terms.back() = make(sign, {tree_.child(quantity, 0)}, tag);
  } else {
    unit = tree_.child(last, 1);
    terms.back() = tree_.child(last, 0);
  }
  NodeId total = make(Kind::sum, 0, terms);
  return make(Kind::quantity, {total, unit});
}

NodeId Parser::money() {
  const Command& command = *current().command;
  advance();
  bool negative = take_symbol('-');
  NodeId value = factor();
  if (value == kNoNode) return fail("money without an amount");
  if (kind(value) == Kind::number && peek().kind == TokenKind::word && power_word(lower_case(peek().text)) > 0) {
    Number n = tree_[value].number;
    n.exponent += power_word(lower_case(peek().text));
    std::string digits(tree_.text(value));
    value = number(digits, n);
    advance();
  }
  if (peek().kind == TokenKind::word && (is_word("dollars") || is_word("USD"))) advance();
  std::string_view currency = command.value == '$'   ? "dollar"
                              : command.value == 'P' ? "pound"
                              : command.value == 'E' ? "euro"
                              : command.value == 'Y' ? "yen"
                                                     : "rupee";
  if (negative) value = make(Kind::negate, {value});
  NodeId unit = make(Kind::unit, {number("1")}, UnitKind::known, currency);
  return make(Kind::quantity, {value, unit});
}

}  // namespace ucas::math
