// Sums, products, powers and what they are made of.
#include <algorithm>

#include "base/str.h"
#include "verify/math/read/parser_impl.h"

namespace ucas::math {

NodeId Parser::sum() {
  if (!enter()) return kNoNode;
  std::vector<NodeId> terms;
  bool first = true;
  while (!failed_) {
    char sign = '+';
    if (first && peek(1).kind == TokenKind::number && (is_word("minus") || is_word("negative"))) {
      sign = '-';
      advance();
    }
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
  NodeId total = failed_ ? kNoNode : lift_unit(terms);
  // -4 mod 7, x + 1 \bmod 3
  bool modulo = is_command(Meaning::modulus) || (peek().kind == TokenKind::word && lower_case(peek().text) == "mod");
  if (total != kNoNode && modulo) total = modulus(total);
  leave();
  return total;
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
  note("a whole number next to a fraction read as a mixed number");
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

// A product, read from left to right: factors side by side or with signs between them, a unit behind them.
struct Parser::TermReader {
  enum class Step : uint8_t { taken, other, end };

  Parser& p;
  size_t first_token;
  std::vector<NodeId> factors = {};
  bool literal = false;   // so far one bare number, which may begin a mixed number
  NodeId time = kNoNode;  // 9 a.m., which ends the term

  NodeId read();
  NodeId product();
  Step mixed_number();
  Step operation();
  Step word();
  void drop_braces_of_unit();
  Step unit_in_brackets();
  Step number_word(const Token& token);
  Step combination(const Token& token);
  Step behind_measure();
  Step neighbour();
  bool numeric() const { return p.kind(factors.back()) == Kind::number; }
  bool is_variable(const Token& token) const;
  Step replace(NodeId node) {
    factors.assign(1, node);
    return Step::taken;
  }
  Step refuse(std::string_view reason) {
    p.fail(reason);
    return Step::end;
  }
};

// What has been read so far as one node.
NodeId Parser::TermReader::product() {
  NodeId node = factors.size() == 1 ? factors[0] : p.make(Kind::product, 0, factors);
  factors.assign(1, node);
  return node;
}

Parser::TermReader::Step Parser::TermReader::mixed_number() {
  if (!literal || factors.size() != 1 || p.at_ != first_token + 1 || !p.plain_fraction(0)) return Step::other;
  factors[0] = p.mixed(factors[0]);
  literal = false;
  return p.peek().kind == TokenKind::number ? refuse("a number behind a mixed number") : Step::taken;
}

// * / mod
Parser::TermReader::Step Parser::TermReader::operation() {
  if (p.is_symbol('*')) {
    bool cross = p.current().exponent == 1 && p.kind(factors.back()) == Kind::symbol;
    p.advance();
    cross = cross && (p.is_command(Meaning::dressed) || p.peek().style == Style::bold ||
                      p.tree_.text(factors.back()) == "nabla");
    NodeId next = p.signed_factor();
    if (next == kNoNode) return refuse("a factor is missing");
    NodeId one = factors.size() == 1 ? p.scientific(factors[0], next) : kNoNode;
    if (cross) {  // of vectors: the order counts
      factors.back() = p.make(Kind::call, {factors.back(), next}, Function::user, "cross");
    } else if (one != kNoNode) {
      factors[0] = one;
    } else {
      factors.push_back(next);
    }
    literal = false;
    return Step::taken;
  }
  if (p.is_symbol('/')) {
    p.advance();
    NodeId left = product(), right = p.segment(left);
    if (right == kNoNode && !p.failed()) right = p.signed_factor();
    if (right == kNoNode) return refuse("a divisor is missing");
    literal = false;
    return replace(p.quotient(left, right));
  }
  return p.is_command(Meaning::modulus) ? Step::end : Step::other;
}

// A single letter of a formula is a factor, except behind a number or degrees, where it may be a unit.
bool Parser::TermReader::is_variable(const Token& token) const {
  if (token.kind != TokenKind::word) return false;
  bool letter = token.text.size() == 1 && token.style != Style::text && token.style != Style::roman;
  return token.grouped || (letter && !numeric() && p.kind(factors.back()) != Kind::degree);
}

// 10C3, 8 P 3, 10 nCr 3.
Parser::TermReader::Step Parser::TermReader::combination(const Token& token) {
  const Token& next = p.peek(1);
  bool whole = next.kind == TokenKind::number && next.exponent == 0 && next.text.find('.') == std::string_view::npos;
  if (!literal || !in_words("C P nCr nPr", token.text) || !whole) return Step::other;
  bool ordered = token.text.find('P') != kNone;
  p.advance();
  return replace(p.chosen(factors[0], p.number_atom(), ordered));
}

// 2.5 million, 3 dozen, 3 tenths, \frac12 million.
Parser::TermReader::Step Parser::TermReader::number_word(const Token& token) {
  std::string word = lower_case(token.text);
  const Multiplier* by = multiplier(word);
  bool symbol = word.size() == 2 && token.text != word;  // mN
  bool letter = p.kind(factors.back()) == Kind::symbol;
  if (by == nullptr || symbol || letter || find_unit(token.text)) return Step::other;
  if (numeric() && by->power != 0) {  // whose precision is known
    Number n = p.tree_[factors.back()].number;
    n.exponent += by->power;
    std::string shown(p.tree_.text(factors.back()));
    factors.back() = p.number(shown, n);
  } else {
    auto ten = [&](int power) { return p.number("1", {std::max(power, 0), -1, 0}); };
    NodeId up = by->power != 0 ? ten(by->power) : p.number(by->times);
    NodeId down = by->power < 0 ? ten(-by->power) : p.number(by->over);
    if (!numeric()) product();
    NodeId value = p.make(Kind::product, {factors.back(), up});
    factors.back() = p.make(Kind::quotient, {value, down});
  }
  p.advance();
  return Step::taken;
}

// 5{\text{ cm}}^2, 5{cm}: braces that only group a unit go.
void Parser::TermReader::drop_braces_of_unit() {
  const Token& token = p.peek(1);
  if (!p.is_symbol('{') || token.kind != TokenKind::word) return;
  bool textual = token.style == Style::text || token.style == Style::roman;
  if (!textual && (token.text.size() < 2 || !find_unit(token.text))) return;
  size_t end = 2;
  while (p.peek(end).kind == TokenKind::word || p.is_symbol('/', end)) ++end;
  if (!p.is_symbol('}', end)) return;
  p.tokens_.erase(p.tokens_.begin() + static_cast<std::ptrdiff_t>(p.at_ + end));
  p.tokens_.erase(p.tokens_.begin() + static_cast<std::ptrdiff_t>(p.at_));
}

// 12 (cm), 5 [cm], 5 (\text{apples}).
Parser::TermReader::Step Parser::TermReader::unit_in_brackets() {
  drop_braces_of_unit();
  const Token& token = p.peek(1);
  bool round = p.is_symbol('('), square = p.is_symbol('[');
  bool curly = p.is_command(Meaning::opening) && p.peek().command->value == '{';
  if (!(round || square || curly) || token.kind != TokenKind::word || token.text.size() < 2) return Step::other;
  bool foreign = static_cast<unsigned char>(token.text[0]) >= 0x80;
  if (!foreign && !find_unit(token.text)) return Step::other;
  size_t before = p.at_;
  p.advance();
  NodeId value = p.with_unit(product(), numeric());
  if (value == kNoNode) return Step::end;
  bool closed =
      curly ? p.is_command(Meaning::closing) && p.peek().command->value == '{' : p.is_symbol(round ? ')' : ']');
  if (value == factors[0] || !closed) {
    p.at_ = before;
    return Step::other;
  }
  p.advance();
  literal = false;
  return replace(value);
}

// Words that are no factor: a time of day, mod, choose, millions, units. `other`: it may be a factor after all.
Parser::TermReader::Step Parser::TermReader::word() {
  const Token& token = p.peek();
  if (token.kind == TokenKind::word && token.text == "to") return Step::end;  // 3 to 4
  if (numeric() && factors.size() == 1 && p.half_of_day() > 0) {              // 9 a.m.
    std::string half{(token.text[0] | 32) == 'a' ? "am" : "pm"};
    p.advance(p.half_of_day());
    time = p.make(Kind::ratio, 0, factors, half, 1);
    return Step::end;
  }
  bool wordlike = token.kind == TokenKind::word || token.kind == TokenKind::unknown || p.is_command(Meaning::money) ||
                  p.is_command(Meaning::greek);
  if (!wordlike || is_variable(token)) return Step::other;
  if (p.is_connective()) return Step::end;
  std::string word = token.kind == TokenKind::word ? lower_case(token.text) : std::string();
  if (word == "mod" && p.starts_factor(p.peek(1))) return Step::end;
  if (word == "choose" && p.starts_factor(p.peek(1))) {
    p.advance();
    NodeId left = product(), right = p.factor();
    return replace(p.chosen(left, right, false));
  }
  if (token.kind == TokenKind::word) {
    if (combination(token) == Step::taken || number_word(token) == Step::taken) return Step::taken;
  }
  size_t before = p.at_;
  bool number = numeric();
  NodeId value = p.with_unit(product(), number);
  if (p.failed_) return Step::end;
  if (p.at_ == before) return Step::other;
  literal = false;
  return replace(value);
}

// A number behind a measure continues it: 5 feet 3 inches, 60^\circ 42'. Elsewhere two numbers side by side are
// none.
Parser::TermReader::Step Parser::TermReader::behind_measure() {
  if (p.peek().kind != TokenKind::number && p.peek().kind != TokenKind::based) return Step::other;
  Kind last = p.kind(factors.back());
  if (last == Kind::quantity && factors.size() == 1) {
    NodeId more = p.term();
    if (more == kNoNode || p.kind(more) != Kind::quantity) return refuse("a number behind a unit");
    return replace(p.make(Kind::sum, {factors[0], more}));
  }
  if (last == Kind::degree && factors.size() == 1) return replace(p.minutes(factors[0]));
  return last == Kind::number || last == Kind::based ? refuse("two numbers side by side") : Step::other;
}

// A factor without a sign in front.
Parser::TermReader::Step Parser::TermReader::neighbour() {
  if (!p.starts_factor(p.peek())) return Step::end;
  if (Step measure = behind_measure(); measure != Step::other) return measure;
  NodeId next = p.factor();
  if (next == kNoNode) return Step::end;
  Kind kind = p.kind(next);
  if (kind == Kind::relation) {  // n\pi (n \in \mathbb{Z})
    p.conditions_.push_back(next);
    return Step::taken;
  }
  if (kind == Kind::quantity && factors.size() == 1 && p.kind(factors[0]) == Kind::quantity) {
    return replace(p.make(Kind::sum, {factors[0], next}));
  }
  if (kind == Kind::text) return refuse("words behind a value");
  if (kind == Kind::interval) return refuse("an interval behind a value");
  factors.push_back(next);
  literal = false;
  return Step::taken;
}

NodeId Parser::TermReader::read() {
  NodeId first = p.factor();
  if (first == kNoNode) return kNoNode;
  factors.push_back(first);
  literal = p.integer_literal(first);
  while (!p.failed_) {
    Step step = mixed_number();
    if (step == Step::other) step = operation();
    if (step == Step::other) step = unit_in_brackets();
    if (step == Step::other) step = word();
    if (step == Step::other) step = neighbour();
    if (step == Step::end) break;
  }
  if (p.failed_) return kNoNode;
  return time != kNoNode ? time : product();
}

NodeId Parser::term() { return TermReader{*this, at_}.read(); }

bool Parser::starts_factor(const Token& token) const {
  using enum Meaning;
  static constexpr Meaning kFactors[] = {greek, constant, function, fraction, binomial, root,  accent, dressed,
                                         big,   begin,    boxed,    opening,  named,    money, dots};
  switch (token.kind) {
    case TokenKind::number:
    case TokenKind::based:
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
      return std::find(std::begin(kFactors), std::end(kFactors), token.command->meaning) != std::end(kFactors);
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

// What follows ^: degrees, primes, the ending of an ordinal, a transposition, or an exponent.
NodeId Parser::raised(NodeId base) {
  advance();
  bool brace = is_symbol('{');
  auto braced = [&](std::string_view word) { return brace && is_word(word, 1) && is_symbol('}', 2); };
  bool circle = is_command(Meaning::degree, brace) && (!brace || is_symbol('}', 2));
  if (circle || (braced("o") && peek(1).style != Style::math)) {  // ^\circ, ^{\circ}, 72^{\text{o}}
    advance(brace ? 3 : 1);
    return make(Kind::degree, {base});
  }
  if (is_symbol('\'', brace)) {  // ^{\prime}
    advance();
    if (brace) advance(), take_symbol('}');
    return make(Kind::call, {base}, Function::user, "'");
  }
  bool transposed = braced("T") && kind(base) == Kind::matrix;
  if (braced("th") || transposed) {  // 5^{th}
    advance(3);
    if (!transposed && (is_word("root") || is_word("power"))) return fail("the ordinal of a root");
    return transposed ? make(Kind::call, {base}, Function::user, "transpose") : base;
  }
  NodeId exponent = argument(false);
  if (is_symbol('_') && kind(base) == Kind::symbol) {  // v^2_0
    std::string name(tree_.text(base));
    if (subscript(name) == kNoNode) return kNoNode;
    base = symbol(name);
  }
  return make(Kind::power, {base, exponent});
}

NodeId Parser::postfix(NodeId base) {
  while (!failed_) {
    if (is_symbol('^')) {
      base = raised(base);
    } else if (take_symbol('!')) {
      bool twice = take_symbol('!');
      base = make(Kind::call, {base}, twice ? Function::double_factorial : Function::factorial);
    } else if (take_symbol('%')) {
      base = make(Kind::percent, {base});
    } else if (is_command(Meaning::degree)) {
      bool composed = kind(base) == Kind::symbol && peek(1).kind == TokenKind::word;  // f \circ g
      advance();
      NodeId inner = composed ? factor() : kNoNode;
      base = composed ? make(Kind::call, {base, inner}, Function::user, "circ") : make(Kind::degree, {base});
    } else if (is_symbol('\'') && kind(base) == Kind::number) {
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
    case TokenKind::based: {
      Token digits = token;
      advance();
      return make(Kind::based, 0, {}, digits.text, digits.exponent);
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
        case '^':
        case '_':
          return scripted_combination();
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

// How many decimals go on in 0.333... and 0.142142142...: those that end with one block three times.
static int32_t repeated(std::string_view decimals) {
  for (size_t block = 1; 3 * block <= decimals.size(); ++block) {
    std::string_view tail = decimals.substr(decimals.size() - 3 * block);
    if (tail.substr(block) == tail.substr(0, 2 * block)) return static_cast<int32_t>(block);
  }
  return 0;
}

NodeId Parser::number_atom() {
  Token token = current();
  if (token.kind != TokenKind::number) return fail("a number is missing");
  advance();
  if (token.grouped) note("thousands separators taken out");
  if (is_command(Meaning::dots) && token.text.find('.') != kNone) {  // 0.333...
    advance();
    if (token.repeat == 0) token.repeat = repeated(token.text.substr(token.text.find('.') + 1));
  }
  NodeId node = number(token.text, {token.exponent, -1, token.repeat});
  if (peek().kind == TokenKind::word && !peek().space_before) {
    std::string_view tail = peek().text;
    if (tail == "th" || tail == "st" || tail == "nd" || tail == "rd") {
      advance();
      if (is_word("root") || is_word("power")) return fail("the ordinal of a root");
    }
  }
  return node;
}

}  // namespace ucas::math
