// Sums, products, powers and what they are made of.
#include <algorithm>

#include "base/str.h"
#include "verify/math/parser_impl.h"

namespace ucas::math {

NodeId Parser::sum() {
  if (!enter()) return kNoNode;
  std::vector<NodeId> terms;
  bool first = true;
  while (!failed_) {
    char sign = '+';
    if (first || is_symbol('+') || is_symbol('-') || is_symbol('P') || is_symbol('M')) {
      // Signs one after another: - - x.
      while (is_symbol('+') || is_symbol('-') || is_symbol('P') || is_symbol('M')) {
        char c = current().symbol;
        advance();
        if (first && c == '-' && is_symbol('-')) return fail("two signs in a row");  // "--8": a slip or a hedge
        if (c == '-' && is_symbol('/', 0)) {
          if (peek(1).kind == TokenKind::symbol && (peek(1).symbol == '+')) return fail("+/-");
        }
        if (c == '+' && is_symbol('/') && is_symbol('-', 1)) {  // +/-
          advance();
          advance();
          c = 'P';
        }
        if (c == '+' && is_symbol('-') && !peek().space_before && first) c = 'P', advance();  // "+-3"
        if (c == 'P' || c == 'M') {
          sign = c;
        } else if (c == '-') {
          sign = sign == '-' ? '+' : sign == '+' ? '-' : sign;
        }
      }
    } else {
      break;
    }
    first = false;
    NodeId next = term();
    if (next == kNoNode) return fail("a term is missing");
    if (sign == '-') next = make(Kind::negate, {next});
    if (sign == 'P' || sign == 'M') next = make(Kind::plus_minus, {next}, uint8_t{sign == 'M'});
    terms.push_back(next);
  }
  leave();
  if (failed_) return kNoNode;
  return lift_unit(terms);
}

NodeId Parser::signed_factor() {
  bool negative = false;
  char both = 0;
  while (is_symbol('-') || is_symbol('+') || is_symbol('P') || is_symbol('M')) {
    char c = current().symbol;
    if (c == '-') negative = !negative;
    if (c == 'P' || c == 'M') both = c;
    advance();
  }
  NodeId value = factor();
  if (value == kNoNode) return kNoNode;
  if (both) return make(Kind::plus_minus, {value}, uint8_t{both == 'M'});
  return negative ? make(Kind::negate, {value}) : value;
}

// 1.2 \times 10^{-3} is one number, whose precision is known.
NodeId Parser::scientific(NodeId mantissa, NodeId power) {
  if (kind(mantissa) != Kind::number || kind(power) != Kind::power) return kNoNode;
  const Node& digits = tree_[mantissa];
  NodeId base = tree_.child(power, 0), exponent = tree_.child(power, 1);
  bool negative = kind(exponent) == Kind::negate;
  if (negative) exponent = tree_.child(exponent, 0);
  if (!integer_literal(base) || tree_.text(base) != "10" || !integer_literal(exponent)) return kNoNode;
  std::string_view text = tree_.text(exponent);
  if (text.size() > 5 || digits.number.repeat != 0 || digits.number.exponent != 0) return kNoNode;
  int32_t value = 0;
  for (char c : text) value = value * 10 + (c - '0');
  std::string shown(tree_.text(mantissa));
  return number(shown, {negative ? -value : value, -1, 0});
}

// Is the token at `at_` + `at` the start of \frac{a}{b} or a/b of two integers?
bool Parser::plain_fraction(size_t at) const {
  const Token& token = peek(at);
  if (token.kind == TokenKind::number) {
    return token.space_before && is_symbol('/', at + 1) && peek(at + 2).kind == TokenKind::number;
  }
  if (!is_command(Meaning::fraction, at)) return false;
  // \frac 12, \frac{1}{2}
  size_t i = at + 1;
  for (int part = 0; part < 2; ++part) {
    bool brace = is_symbol('{', i);
    i += brace;
    if (peek(i).kind != TokenKind::number || peek(i).text.find('.') != std::string_view::npos) return false;
    if (part == 0 && !brace && peek(i).text.size() == 2) return true;  // \frac12
    ++i;
    if (brace && !is_symbol('}', i)) return false;
    i += brace;
  }
  return true;
}

// 2\frac{1}{2} and 2 1/2: a whole number before a proper fraction is a mixed number; before another one a product.
NodeId Parser::mixed(NodeId whole) {
  NodeId part = kNoNode;
  if (is_command(Meaning::fraction)) {
    advance();
    part = fraction();
  } else {
    NodeId top = number_atom();
    advance();  // the slash
    NodeId bottom = number_atom();
    part = make(Kind::quotient, {top, bottom});
  }
  if (part == kNoNode) return kNoNode;
  if (kind(part) == Kind::quotient) {
    auto digits = [&](size_t k) {
      std::string_view text = tree_.text(tree_.child(part, k));
      return text.substr(std::min(text.find_first_not_of('0'), text.size()));
    };
    std::string_view top = digits(0), bottom = digits(1);
    bool proper = top.size() < bottom.size() || (top.size() == bottom.size() && top < bottom);
    if (!proper) return make(Kind::product, {whole, part});
  }
  note("a whole number beside a fraction read as a mixed number");
  return make(Kind::sum, {whole, part});
}

// How many tokens here say "a.m." or "pm"; 0 for none.
int Parser::half_of_day() const {
  if (peek().kind != TokenKind::word) return 0;
  std::string word = lower_case(peek().text);
  if (word == "am" || word == "pm") return is_symbol('.', 1) ? 2 : 1;
  bool dotted = (word == "a" || word == "p") && is_symbol('.', 1) && (is_word("m", 2) || is_word("M", 2));
  return dotted ? 3 + is_symbol('.', 3) : 0;
}

// Minutes and seconds of an angle behind its degrees, each with one or two primes.
NodeId Parser::minutes(NodeId degrees) {
  std::vector<NodeId> parts{tree_.child(degrees, 0)};
  while (!failed_ && peek().kind == TokenKind::number && parts.size() < 3) {
    NodeId part = number_atom();
    bool hat = is_symbol('^');
    if (hat) advance();
    bool brace = hat && take_symbol('{');
    int primes = 0;
    while (take_symbol('\'')) ++primes;
    if (brace && !take_symbol('}')) return fail("a prime with more");
    if (primes < 1 || primes > 2) return fail("a number behind degrees");
    parts.push_back(make(Kind::quotient, {part, number(primes == 1 ? "60" : "3600")}));
  }
  return make(Kind::degree, {make(Kind::sum, 0, parts)});
}

NodeId Parser::term() {
  std::vector<NodeId> factors;
  auto product = [&]() -> NodeId {
    NodeId node = factors.size() == 1 ? factors[0] : make(Kind::product, 0, factors);
    factors.assign(1, node);
    return node;
  };
  size_t first_token = at_;
  NodeId first = factor();
  if (first == kNoNode) return kNoNode;
  factors.push_back(first);
  // A bare number just read: what a mixed number or a unit without \text may follow.
  auto bare = [&] { return !factors.empty() && integer_literal(factors.back()) && at_ > first_token; };
  bool literal = bare();
  while (!failed_) {
    if (literal && factors.size() == 1 && at_ == first_token + 1 && plain_fraction(0)) {
      factors[0] = mixed(factors[0]);
      literal = false;
      if (peek().kind == TokenKind::number) return fail("a number behind a mixed number");
      continue;
    }
    bool numeric = !factors.empty() && kind(factors.back()) == Kind::number;
    if (take_symbol('*')) {
      NodeId next = signed_factor();
      if (next == kNoNode) return fail("a factor is missing");
      NodeId one = factors.size() == 1 ? scientific(factors[0], next) : kNoNode;
      if (failed_) return kNoNode;
      if (one != kNoNode) {
        factors[0] = one;
      } else {
        factors.push_back(next);
      }
      literal = false;
      continue;
    }
    if (is_symbol('/')) {
      advance();
      NodeId left = product(), right = signed_factor();
      if (right == kNoNode) return fail("a divisor is missing");
      factors.assign(1, make(Kind::quotient, {left, right}));
      literal = false;
      continue;
    }
    if (is_command(Meaning::modulus)) {
      factors.assign(1, modulus(product()));
      continue;
    }
    const Token& token = peek();
    bool variable = token.kind == TokenKind::word && token.text.size() == 1 && token.style != Style::text &&
                    token.style != Style::roman && !numeric && kind(factors.back()) != Kind::degree;
    variable |= token.kind == TokenKind::word && token.grouped;
    if (numeric && factors.size() == 1 && half_of_day() > 0) {  // 9 a.m.
      std::string half{(token.text[0] | 32) == 'a' ? "am" : "pm"};
      for (int k = half_of_day(); k > 0; --k) advance();
      return make(Kind::ratio, 0, factors, half, 1);
    }
    if (token.kind == TokenKind::word && token.text == "to") break;  // 3 to 4
    if (variable) {
    } else if (token.kind == TokenKind::word || is_command(Meaning::money) || token.kind == TokenKind::unknown ||
               is_command(Meaning::greek)) {
      if (is_connective()) break;
      std::string word = token.kind == TokenKind::word ? lower_case(token.text) : std::string();
      if (word == "mod" && starts_factor(peek(1))) {
        factors.assign(1, modulus(product()));
        continue;
      }
      if ((word == "choose") && starts_factor(peek(1))) {
        advance();
        NodeId left = product(), right = factor();
        factors.assign(1, make(Kind::call, {left, right}, Function::binomial));
        continue;
      }
      if (numeric && power_word(word) > 0) {  // 2.5 million
        const Node& node = tree_[factors.back()];
        Number n = node.number;
        n.exponent += power_word(word);
        std::string shown(tree_.text(factors.back()));
        factors.back() = number(shown, n);
        advance();
        continue;
      }
      if (numeric && (word == "dozen")) {
        advance();
        factors.push_back(number("12"));
        continue;
      }
      size_t before = at_;
      NodeId value = with_unit(product(), numeric);
      if (failed_) return kNoNode;
      if (at_ != before) {
        factors.assign(1, value);
        literal = false;
        continue;
      }
    }
    if (!starts_factor(token)) break;
    if (token.kind == TokenKind::number && !factors.empty()) {
      Kind last = kind(factors.back());
      if (last == Kind::quantity && factors.size() == 1) {  // 5 feet 3 inches
        NodeId more = term();
        if (more == kNoNode || kind(more) != Kind::quantity) return fail("a number behind a unit");
        factors[0] = make(Kind::sum, {factors[0], more});
        continue;
      }
      if (last == Kind::degree && factors.size() == 1) {  // 60^\circ 42' 30''
        factors[0] = minutes(factors[0]);
        continue;
      }
      bool after_number = last == Kind::number || last == Kind::based;
      if (after_number) return fail("two numbers side by side");
    }
    NodeId next = factor();
    if (next == kNoNode) return kNoNode;
    if (kind(next) == Kind::relation) {  // n\pi (n \in \mathbb{Z})
      conditions_.push_back(next);
      continue;
    }
    // 5 feet 3 inches.
    if (kind(next) == Kind::quantity && factors.size() == 1 && kind(factors[0]) == Kind::quantity) {
      factors[0] = make(Kind::sum, {factors[0], next});
      continue;
    }
    if (kind(next) == Kind::text) return fail("words behind a value");
    bool vector = kind(next) == Kind::tuple && tree_[next].tag == static_cast<uint8_t>(Bracket::angle);
    if ((kind(next) == Kind::tuple && !vector) || kind(next) == Kind::interval) return fail("a pair behind a value");
    factors.push_back(next);
    literal = false;
  }
  if (failed_) return kNoNode;
  return product();
}

bool Parser::starts_factor(const Token& token) const {
  switch (token.kind) {
    case TokenKind::number:
      return true;
    case TokenKind::word: {
      if (token.style == Style::text && token.text.size() > 1 && !find_function(token.text)) {
        return token.text == "pi" ||
               std::all_of(token.text.begin(), token.text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
      }
      return token.grouped || find_function(token.text) || !looks_like_word(token.text);
    }
    case TokenKind::symbol:
      if (token.symbol == '|' || token.symbol == 'V') return bars_ == 0 && !set_bar_;
      return token.symbol == '(' || token.symbol == '[' || token.symbol == '{';
    case TokenKind::command:
      switch (token.command->meaning) {
        case Meaning::greek:
        case Meaning::constant:
        case Meaning::function:
        case Meaning::fraction:
        case Meaning::binomial:
        case Meaning::root:
        case Meaning::accent:
        case Meaning::dressed:
        case Meaning::big:
        case Meaning::begin:
        case Meaning::boxed:
        case Meaning::opening:
        case Meaning::named:
        case Meaning::money:
        case Meaning::dots:
          return true;
        default:
          return false;
      }
    default:
      return false;
  }
}

NodeId Parser::factor() {
  if (!enter()) return kNoNode;
  NodeId base = atom();
  NodeId out = base == kNoNode ? kNoNode : postfix(base);
  leave();
  return out;
}

NodeId Parser::postfix(NodeId base) {
  while (!failed_) {
    if (is_symbol('^')) {
      advance();
      bool brace = is_symbol('{');
      // ^\circ, ^{\circ}
      if (is_command(Meaning::degree, brace) && (!brace || is_symbol('}', 2))) {
        for (int k = brace ? 3 : 1; k > 0; --k) advance();
        base = make(Kind::degree, {base});
        continue;
      }
      if (brace && is_word("o", 1) && peek(1).style != Style::math && is_symbol('}', 2)) {  // 72^{\text{o}}
        for (int k = 0; k < 3; ++k) advance();
        base = make(Kind::degree, {base});
        continue;
      }
      // ^{\prime}
      if (is_symbol('\'', brace)) {
        advance();
        if (brace) advance(), take_symbol('}');
        base = make(Kind::call, {base}, Function::user, "'");
        continue;
      }
      if (brace && is_word("th", 1) && is_symbol('}', 2)) {  // 5^{th}
        for (int k = 0; k < 3; ++k) advance();
        continue;
      }
      if (brace && is_word("T", 1) && is_symbol('}', 2) && kind(base) == Kind::matrix) {
        for (int k = 0; k < 3; ++k) advance();
        base = make(Kind::call, {base}, Function::user, "transpose");
        continue;
      }
      NodeId exponent = argument(false);
      if (is_symbol('_') && kind(base) == Kind::symbol) {  // v^2_0
        std::string name(tree_.text(base));
        if (subscript(name) == kNoNode) return kNoNode;
        base = make(Kind::symbol, {}, uint8_t{0}, name);
      }
      base = make(Kind::power, {base, exponent});
    } else if (is_symbol('!')) {
      advance();
      bool twice = take_symbol('!');
      base = make(Kind::call, {base}, twice ? Function::double_factorial : Function::factorial);
    } else if (is_symbol('%')) {
      advance();
      base = make(Kind::percent, {base});
    } else if (is_command(Meaning::degree)) {
      advance();
      base = make(Kind::degree, {base});
    } else if (is_symbol('\'') && kind(base) == Kind::number && kind(base) != Kind::symbol) {
      return fail("a prime behind a number");
    } else if (is_symbol('_') && kind(base) == Kind::number) {
      return fail("an index behind a number");
    } else {
      break;
    }
  }
  return failed_ ? kNoNode : base;
}

NodeId Parser::atom() {
  Token& token = current();
  switch (token.kind) {
    case TokenKind::number: {
      NodeId based = based_atom();
      return based != kNoNode || failed_ ? based : number_atom();
    }
    case TokenKind::word: {
      NodeId based = based_atom();
      return based != kNoNode || failed_ ? based : word_atom();
    }
    case TokenKind::symbol:
      switch (token.symbol) {
        case '(':
        case '[':
        case ']':
          return bracket(token.symbol);
        case '{':
          return group();
        case '|':
        case 'V':
          return bars(token.symbol);
        default:
          return fail(str("unexpected ", token.symbol));
      }
    case TokenKind::command:
      return command_atom();
    case TokenKind::unknown:
      return fail(str("unknown command \\", token.text.substr(0, 24)));
    case TokenKind::end:
      return fail("it ends too early");
    default:
      return fail("a value is missing");
  }
}

NodeId Parser::number_atom() {
  Token token = current();
  if (token.kind != TokenKind::number) return fail("a number is missing");
  advance();
  if (token.grouped) note("thousands separators taken out");
  NodeId node = number(token.text, {token.exponent, -1, token.repeat});
  // 0.333... and 15th.
  if (is_command(Meaning::dots) && token.text.find('.') != std::string_view::npos) advance();
  if (peek().kind == TokenKind::word && !peek().space_before) {
    std::string_view tail = peek().text;
    if (tail == "th" || tail == "st" || tail == "nd" || tail == "rd") advance();
  }
  return node;
}

}  // namespace ucas::math
