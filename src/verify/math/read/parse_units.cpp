// Units behind values: 5\text{ cm}^2, 3 m/s, 7 apples, \$3.50, 20\text{ degrees Celsius}.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/str.h"
#include "verify/math/read/parser_impl.h"

namespace ucas::math {

// The base units of a quantity with their powers.
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

namespace {

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
  if (word.size() < 3) return std::string(word);  // mN, MN
  std::string out = lower_case(word);
  constexpr std::pair<std::string_view, std::string_view> kIrregular[] = {
      {"children", "child"}, {"men", "man"}, {"women", "woman"}, {"vertices", "vertex"}, {"dice", "die"}};
  for (auto [many, one] : kIrregular) {
    if (out == many) return std::string(one);
  }
  for (std::string_view ending : {"ches", "shes", "xes", "sses"}) {
    if (out.size() > 4 && out.ends_with(ending)) return out.substr(0, out.size() - 2);
  }
  if (out.size() > 4 && out.ends_with("ies")) {
    out.replace(out.size() - 3, 3, "y");
  } else if (out.size() > 3 && out.back() == 's' && !out.ends_with("ss")) {
    out.pop_back();
  }
  return out;
}

// With letters beyond ASCII, and more than one of them: no variable.
bool is_foreign(std::string_view name) {
  return name.size() > 2 &&
         std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

}  // namespace

// One unit, word by word: "cm", "square metres", "kg m^2 / s^2", "\mu m". Its factor to base units is above / below.
struct Parser::UnitReader {
  enum class Step : uint8_t { taken, other, end };
  struct Name {
    std::string text, low;
    bool micro = false, textual = false;  // \mu in front; in \text{..} or as a command
  };

  Parser& p;
  NodeId value;
  bool numeric;
  Dimension dimension = {};
  std::vector<NodeId> above = {}, below = {};
  bool words = false, any = false;  // a word that is in no table; anything read
  bool radians = false;
  int sign = 1, pending = 1;  // behind "per"; behind "square" and "cubic"

  bool plain_word(size_t i) const { return p.peek(i).kind == TokenKind::word; }
  NodeId read();
  NodeId temperature();
  NodeId whole(const Name& name);
  Step connector();
  Step multiplier(const Name& name);
  std::optional<Name> name();
  void square_in_chinese(Name& name);
  const Unit* known(const Name& name) const;
  bool counts_as_word(const Name& name) const;
  void take(const Name& name, const Unit* unit);
  int power();
  void scale(std::string_view digits, int power, bool up);
  NodeId quantity();
};

// 20^\circ C, 68 \text{ degrees Fahrenheit}.
NodeId Parser::UnitReader::temperature() {
  if (p.kind(value) != Kind::degree || !plain_word(0)) return kNoNode;
  std::string word = lower_case(p.peek().text);
  bool celsius = word == "c" || word == "celsius", fahrenheit = word == "f" || word == "fahrenheit";
  bool marked = p.peek().style != Style::math || word.size() > 1 || p.at_stop(1);
  if ((!celsius && !fahrenheit) || !marked) return kNoNode;
  p.advance();
  NodeId unit = p.make(Kind::unit, {p.number("1")}, UnitKind::known, celsius ? "celsius" : "fahrenheit");
  return p.make(Kind::quantity, {p.tree_.child(value, 0), unit});
}

// The text between two parts of a unit: / per * -.
Parser::UnitReader::Step Parser::UnitReader::connector() {
  const Token& token = p.peek();
  bool slash = p.is_symbol('/') || p.is_word("per");
  bool dot = p.is_symbol('*') || (p.is_symbol('-') && !token.space_before && token.style != Style::math);
  if (any && (slash || dot) && plain_word(1)) {
    const Token& next = p.peek(1);
    bool textual = next.style != Style::math || p.is_word("per") || token.style != Style::math;
    if (!textual && !(find_unit(next.text) && next.text.size() <= 4)) return Step::end;
    if (!find_unit(next.text) && !slash) return Step::end;
    if (slash) sign = -1;
    p.advance();
    return Step::taken;
  }
  if (any || !p.is_word("per") || p.is_word("cent", 1)) return Step::other;
  sign = -1;  // \$5 per hour
  p.advance();
  any = true;
  return Step::taken;
}

std::optional<Parser::UnitReader::Name> Parser::UnitReader::name() {
  const Token& token = p.peek();
  Name name;
  bool greek = p.is_command(Meaning::greek) && numeric;
  bool ohm = greek && token.text == "Omega";
  name.micro = greek && token.text == "mu" && plain_word(1) && find_unit(p.peek(1).text);
  if (ohm) {
    name.text = "ohm";
  } else if (name.micro) {
    name.text = p.peek(1).text;
  } else if (token.kind == TokenKind::word && !token.grouped) {
    name.text = token.text;
  } else {
    return std::nullopt;
  }
  name.low = lower_case(name.text);
  name.textual = token.style == Style::text || token.style == Style::roman || name.micro || ohm;
  if (p.is_connective() || (token.style == Style::bold && name.low.size() < 3)) return std::nullopt;
  return name;
}

// Words that make something else of the value than a quantity: percent, degrees.
NodeId Parser::UnitReader::whole(const Name& name) {
  if (any) return kNoNode;
  if (bool two = name.low == "per"; two || in_words("percent pct percentage", name.low)) {
    p.advance(1 + two);
    return p.make(Kind::percent, {value});
  }
  if (name.low == "degrees" || name.low == "degree" || name.low == "deg") {
    p.advance();
    return p.with_unit(p.kind(value) == Kind::degree ? value : p.make(Kind::degree, {value}), numeric);
  }
  return kNoNode;
}

// "square", "cu." in front of a unit.
Parser::UnitReader::Step Parser::UnitReader::multiplier(const Name& name) {
  bool square = name.low == "square" || name.low == "sq", cubic = name.low == "cubic" || name.low == "cu";
  if (!square && !cubic) return Step::other;
  if (!plain_word(1) && !(p.is_symbol('.', 1) && plain_word(2))) return Step::end;
  if (cubic && !find_unit(p.peek(1).text) && !p.is_word("units", 1) && !p.is_word("unit", 1)) return Step::end;
  pending = square ? 2 : 3;
  p.advance();
  p.take_symbol('.');
  return Step::taken;
}

void Parser::UnitReader::square_in_chinese(Name& name) {
  for (int power : {2, 3}) {
    std::string_view prefix = power == 2 ? "\u5e73\u65b9" : "\u7acb\u65b9";
    if (!name.text.starts_with(prefix) || !find_unit(std::string_view(name.text).substr(prefix.size()))) continue;
    pending = power;
    name.low = name.text.erase(0, prefix.size());
  }
}

// The unit of this name, unless the letters are rather variables of a formula or a word of a sentence.
const Unit* Parser::UnitReader::known(const Name& name) const {
  const Unit* unit = find_unit(name.text);
  if (unit == nullptr) return nullptr;
  size_t size = name.text.size();
  bool apart = p.peek().space_before || (p.kind(value) == Kind::number && name.text != "pi");
  bool in_formula = size >= 4 || (numeric && (size >= 3 || (size == 2 && apart))) || is_foreign(name.text);
  if (any && size == 1 && sign < 0) in_formula = true;  // km/h
  if (!name.textual && !in_formula) return nullptr;
  bool preposition =
      name.textual && unit->name == "in" && !p.at_stop(1) && !p.is_symbol('^', 1) && !p.is_symbol('.', 1);
  return preposition ? nullptr : unit;
}

// 7 apples: a word that cannot be anything but what is counted.
bool Parser::UnitReader::counts_as_word(const Name& name) const {
  if (never_unit(name.low) || find_function(name.text) || name.low.size() < 2) return false;
  bool participle = !any && name.low.size() > 4 && name.low.ends_with("ed");  // 7 halved; 7 apples short
  if (p.at_stop(1) && (participle || in_words("short down under over many few tops extra", name.low))) return false;
  bool long_enough = numeric && name.low.size() >= 4 && !p.starts_factor(p.peek());
  return name.textual || is_foreign(name.text) || long_enough;
}

// An exponent behind the unit: ^2, ^{-1}, squared.
int Parser::UnitReader::power() {
  if (p.is_symbol('^') && (p.peek(1).kind == TokenKind::number || p.is_symbol('{', 1) || p.is_symbol('-', 1))) {
    bool brace = p.is_symbol('{', 1);
    bool minus = p.is_symbol('-', 1 + brace);
    const Token& digit = p.peek(1 + brace + minus);
    bool closed = !brace || p.is_symbol('}', 2 + brace + minus);
    if (digit.kind != TokenKind::number || digit.text.size() != 1 || !closed) return p.fail("a power of a unit"), 0;
    int power = (digit.text[0] - '0') * (minus ? -1 : 1);
    p.advance(2 + 2 * brace + minus);
    return power;
  }
  if (!p.is_word("squared") && !p.is_word("cubed")) return 1;
  int power = p.is_word("squared") ? 2 : 3;
  p.advance();
  return power;
}

void Parser::UnitReader::scale(std::string_view digits, int power, bool up) {
  if (digits == "1" || power == 0) return;
  NodeId part = p.number(digits);
  if (std::abs(power) != 1) part = p.make(Kind::power, {part, p.number(str(std::abs(power)))});
  (up == (power > 0) ? above : below).push_back(part);
}

// One name with its exponent; no unit: a word.
void Parser::UnitReader::take(const Name& name, const Unit* unit) {
  p.advance();
  if (name.micro) p.advance();
  p.take_symbol('.');
  int exponent = power() * sign * pending;
  if (p.failed_) return;
  pending = 1;
  any = true;
  if (unit == nullptr) {
    if (exponent != sign * pending && singular(name.low) != "unit") return void(p.fail("a power of what is counted"));
    words = true;
    dimension.add(singular(name.text), exponent);
    return;
  }
  radians |= unit->dimension.empty();
  add_dimension(dimension, unit->dimension, exponent);
  scale(unit->numerator, exponent, true);
  scale(unit->denominator, exponent, false);
  if (name.micro) scale("1000000", exponent, false);
}

NodeId Parser::UnitReader::quantity() {
  auto product = [&](std::vector<NodeId>& parts) {
    return parts.empty() ? p.number("1") : parts.size() == 1 ? parts[0] : p.make(Kind::product, 0, parts);
  };
  NodeId factor = below.empty() ? product(above) : p.make(Kind::quotient, {product(above), product(below)});
  std::string base = dimension.text();
  if (base.empty()) base = radians ? std::string_view(kRadian) : std::string_view("1");  // hours per day
  NodeId unit = p.make(Kind::unit, {factor}, words ? UnitKind::word : UnitKind::known, base);
  p.note("a unit");
  return p.make(Kind::quantity, {value, unit});
}

NodeId Parser::UnitReader::read() {
  if (NodeId hot = temperature(); hot != kNoNode) return hot;
  while (!p.failed_) {
    Step between = connector();
    if (between == Step::taken) continue;
    std::optional<Name> next = between == Step::end ? std::nullopt : name();
    if (!next) break;
    size_t before = p.at_;
    NodeId other = whole(*next);
    if (other != kNoNode || p.at_ != before) return other;
    Step times = multiplier(*next);
    if (times == Step::taken) continue;
    if (times == Step::end) break;
    square_in_chinese(*next);
    const Unit* unit = known(*next);
    bool word = unit == nullptr && counts_as_word(*next);
    auto capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    if (word && !numeric && std::all_of(next->text.begin(), next->text.end(), capital)) break;
    bool filler = words && (next->low == "of" || next->low == "the" || next->low == "in");  // cups of the tea
    if (unit == nullptr && !word && !filler) break;
    if (unit == nullptr && !word) {
      p.advance();
    } else {
      take(*next, unit);
    }
  }
  if (p.failed_ || !any) return p.failed_ ? kNoNode : value;
  return quantity();
}

// The unit at `at_`, if one is there, around `value`. Letters of a formula are units only where they cannot be
// variables: "5 cm", "60 mph", but 5m is a product; in \text{..} and \mathrm{..} every symbol counts.
NodeId Parser::with_unit(NodeId value, bool numeric) {
  if (value == kNoNode) return kNoNode;
  return UnitReader{*this, value, numeric}.read();
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
  const Multiplier* by = peek().kind == TokenKind::word ? multiplier(lower_case(peek().text)) : nullptr;
  if (kind(value) == Kind::number && by != nullptr && by->power > 0) {
    Number n = tree_[value].number;
    n.exponent += by->power;
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
