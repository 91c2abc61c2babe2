// What begins with a command: fractions, roots, functions, sums, environments.
#include <algorithm>
#include <utility>

#include "base/str.h"
#include "verify/math/read/parser_impl.h"

namespace ucas::math {

NodeId Parser::command_atom() {
  const Command& command = *current().command;
  Token token = current();
  switch (command.meaning) {
    case Meaning::greek:
      advance();
      return symbol_named(std::string(token.text));
    case Meaning::constant:
      advance();
      return constant(static_cast<Constant>(command.value));
    case Meaning::function:
      advance();
      return function_call(static_cast<Function>(command.value));
    case Meaning::fraction:
      advance();
      return fraction();
    case Meaning::binomial: {
      advance();
      NodeId n = argument(true), k = argument(true);
      return make(Kind::call, {n, k}, Function::binomial);
    }
    case Meaning::root:
      advance();
      return root();
    case Meaning::accent:
    case Meaning::dressed:
      advance();
      return accent(command);
    case Meaning::big:
      advance();
      return big_operator(command);
    case Meaning::begin:
      return environment();
    case Meaning::boxed:
      advance();
      return argument(false);
    case Meaning::opening:
      return command.value == '{' ? curly() : bracket(static_cast<char>(command.value));
    case Meaning::named:
      return command.name == "det" ? determinant() : named(command);
    case Meaning::money:
      return money();
    case Meaning::dots:
      advance();
      return symbol("...");
    default:
      return fail(str("\\", command.name, " out of place"));
  }
}

// \angle ABC, \triangle A_1 B_1 C_1.
NodeId Parser::named(const Command& command) {
  advance();
  if (peek().kind != TokenKind::word) return fail(str("\\", command.name));
  std::string name = str(command.name, " ");
  while (peek().kind == TokenKind::word && peek().style == Style::math &&
         (peek().text.size() == 1 || name.back() == ' ') && !is_connective()) {
    name += peek().text;
    advance();
    if (is_symbol('_') && subscript(name) == kNoNode) return kNoNode;
  }
  return symbol(name);
}

// \det of a matrix is the matrix between bars; \det A a function of A.
NodeId Parser::determinant() {
  advance();
  NodeId of = factor();
  if (of == kNoNode) return fail("a determinant of nothing");
  return kind(of) == Kind::matrix ? wrap_matrix(of, '|') : make(Kind::call, {of}, Function::user, "det");
}

// What a command or ^ applies to: a group, one letter, a number (of which \frac12 takes one digit each), a command.
NodeId Parser::argument(bool one_digit) {
  if (!enter()) return kNoNode;
  NodeId node = kNoNode;
  Token& token = current();
  if (token.kind == TokenKind::number && one_digit && token.text.size() > 1 && token.text[0] != '.') {
    node = number(token.text.substr(0, 1));
    token.text.remove_prefix(1);
    token.space_before = false;
  } else if (is_symbol('-') || is_symbol('+')) {
    bool negative = is_symbol('-');
    advance();
    node = argument(one_digit);
    if (negative && node != kNoNode) node = make(Kind::negate, {node});
  } else if (token.kind == TokenKind::number) {
    node = number_atom();
  } else if (token.kind == TokenKind::symbol && token.symbol == '*') {  // z^*
    advance();
    node = symbol("*");
  } else if (token.kind == TokenKind::end) {
    fail("an argument is missing");
  } else {
    node = atom();
  }
  leave();
  return node;
}

NodeId Parser::fraction() {
  NodeId top = argument(true);
  if (top == kNoNode) return fail("a numerator is missing");
  NodeId bottom = argument(true);
  if (bottom == kNoNode) return fail("a denominator is missing");
  return quotient(top, bottom);
}

// dy, \partial f, d^2 y; `alone`: d of \frac{d}{dx}, too.
bool Parser::is_differential(NodeId node, bool alone) const {
  bool product = kind(node) == Kind::product;
  if (!product && !alone) return false;
  if (product) node = tree_.child(node, 0);
  if (kind(node) == Kind::power) node = tree_.child(node, 0);
  return kind(node) == Kind::symbol && (tree_.text(node) == "d" || tree_.text(node) == "partial");
}

// \frac{dy}{dx} is a name: its d is no factor.
NodeId Parser::quotient(NodeId top, NodeId bottom) {
  if (failed_) return kNoNode;
  if (!is_differential(top, true) || !is_differential(bottom, false)) return make(Kind::quotient, {top, bottom});
  return symbol(str(to_string(tree_, top), "/", to_string(tree_, bottom)));
}

NodeId Parser::root() {
  NodeId index = kNoNode;
  if (take_symbol('[')) {
    BarScope scope(*this);
    if (!enter()) return kNoNode;
    index = sum();
    leave();
    if (index == kNoNode || !take_symbol(']')) return fail("the index of a root is not closed");
  }
  NodeId radicand = argument(false);
  if (radicand == kNoNode) return fail("a root of nothing");
  return index == kNoNode ? make(Kind::call, {radicand}, Function::sqrt)
                          : make(Kind::call, {index, radicand}, Function::root);
}

// \hat{x} is a name of its own, \vec{x} is x; \overline{AB} the segment AB; \hat{i} and \mathbf{i} are not \sqrt{-1}.
NodeId Parser::accent(const Command& command) {
  NodeId node = argument(false);
  if (node == kNoNode) return kNoNode;
  bool letter = is_constant(node, Constant::e) || is_constant(node, Constant::i);
  std::string name = letter ? (is_constant(node, Constant::e) ? "e" : "i") : "";
  if (kind(node) == Kind::symbol) name = tree_.text(node);
  if (name.empty()) {
    bool bar = command.name == "overline" || command.name == "bar";
    bool segment = kind(node) == Kind::product;
    if (segment || command.meaning == Meaning::dressed) return node;
    return bar ? make(Kind::call, {node}, Function::conjugate) : fail(str("\\", command.name, " of a formula"));
  }
  if (command.meaning == Meaning::accent) {
    std::string_view accent = command.name == "overline" ? "bar" : command.name == "widehat" ? "hat" : command.name;
    name = str(accent, " ", name);
  }
  return symbol_named(name);
}

// \sum_{k=0}^{n} a_k: a call of "\sum" with lower bound, upper bound (an empty text where there is none) and body.
NodeId Parser::big_operator(const Command& command) {
  NodeId bounds[2] = {kNoNode, kNoNode};
  if (!enter()) return kNoNode;
  while (!failed_ && (is_symbol('_') || is_symbol('^'))) {
    bool upper = is_symbol('^');
    advance();
    bounds[upper] = argument(false);
    if (bounds[upper] == kNoNode) return fail("a bound is missing");
  }
  for (NodeId& bound : bounds) {
    if (bound == kNoNode) bound = make(Kind::text, {}, 0, "");
  }
  NodeId body = term();
  leave();
  if (body == kNoNode) return fail("a sum of nothing");
  return make(Kind::call, {bounds[0], bounds[1], body}, Function::user, str("\\", command.name));
}

bool Parser::arguments(Items& out) {
  advance();
  BarScope scope(*this);
  if (!enter() || !items(out)) return false;
  leave();
  return take_symbol(')') || (fail("a bracket is not closed"), false);
}

NodeId Parser::function_call(Function function) {
  bool trigonometric = function >= Function::sin && function <= Function::cot;
  NodeId base = kNoNode, exponent = kNoNode;
  if (function == Function::root) base = number("3");  // cbrt
  if (function == Function::lg) base = number("10"), function = Function::log;
  while (!failed_ && (is_symbol('_') || is_symbol('^'))) {
    bool upper = is_symbol('^');
    if (!upper && function != Function::log) return fail("an index of a function");
    advance();
    (upper ? exponent : base) = argument(!upper);
  }
  if (failed_) return kNoNode;
  bool hyperbolic = function >= Function::sinh && function <= Function::csch;
  bool inverse = exponent != kNoNode && (trigonometric || hyperbolic) && kind(exponent) == Kind::negate &&
                 integer_literal(tree_.child(exponent, 0)) && tree_.text(tree_.child(exponent, 0)) == "1";
  if (inverse) {
    note("\\sin^{-1} read as arcsin");
    auto from = hyperbolic ? Function::sinh : Function::sin, to = hyperbolic ? Function::arsinh : Function::arcsin;
    function = static_cast<Function>(static_cast<int>(function) - static_cast<int>(from) + static_cast<int>(to));
    exponent = kNoNode;
  }
  NodeId call = kNoNode;
  bool several = function == Function::gcd || function == Function::lcm || function == Function::max ||
                 function == Function::min || function == Function::binomial || function == Function::log;
  if (several && is_symbol('(') && (function != Function::log || base == kNoNode)) {
    Items given;
    if (!arguments(given)) return kNoNode;
    if (function == Function::log && given.nodes.size() != 1) return fail("a logarithm of a list");
    if (function == Function::binomial && given.nodes.size() != 2) return fail("a binomial of two is expected");
    call = make(Kind::call, function, given.nodes);
  } else if (several && function != Function::log) {
    NodeId argument = is_command(Meaning::opening) ? curly() : kNoNode;
    if (argument == kNoNode || kind(argument) != Kind::set) return fail("a function without its arguments");
    std::vector<NodeId> values(tree_.children(argument).begin(), tree_.children(argument).end());
    call = make(Kind::call, function, values);
  } else {
    NodeId argument = function_argument(trigonometric);
    if (argument == kNoNode) return fail("a function of nothing");
    call = base != kNoNode ? make(Kind::call, {base, argument}, function) : make(Kind::call, {argument}, function);
  }
  return exponent == kNoNode ? call : make(Kind::power, {call, exponent});
}

// \sin(x) y is (sin x) y; without brackets the argument is what is written together: \sin 2\pi x, \cos n\theta, but it
// ends before another function, a bracket, a root or e^x. \sin \pi/3 is the sine of a third of pi.
NodeId Parser::function_argument(bool trigonometric) {
  if (!enter()) return kNoNode;
  bool bracketed = is_symbol('(') || is_symbol('[') || is_symbol('{') || is_command(Meaning::opening) || is_symbol('|');
  NodeId out = kNoNode;
  if (bracketed) {
    out = atom();
  } else {
    std::vector<NodeId> factors;
    bool pi = is_command(Meaning::constant) || is_command(Meaning::greek);
    NodeId first = signed_factor();
    if (first == kNoNode) return kNoNode;
    factors.push_back(first);
    while (!failed_) {
      const Token& token = peek();
      bool letter = token.kind == TokenKind::word && starts_factor(token) && !find_function(token.text) &&
                    !is_connective() && !(token.text == "e" && is_symbol('^', 1)) && token.style != Style::text;
      bool symbol = is_command(Meaning::greek) || is_command(Meaning::constant) || is_command(Meaning::fraction);
      if (!letter && !symbol) break;
      pi |= symbol;
      NodeId next = factor();
      if (next == kNoNode) return kNoNode;
      factors.push_back(next);
    }
    out = factors.size() == 1 ? factors[0] : make(Kind::product, 0, factors);
    if (trigonometric && pi && is_symbol('/') && peek(1).kind == TokenKind::number) {
      advance();
      NodeId bottom = number_atom();
      out = make(Kind::quotient, {out, bottom});
    }
  }
  leave();
  return out;
}

NodeId Parser::modulus(NodeId left) {
  bool parenthesised = !is_command(Meaning::modulus) || current().command->value == 'p';
  advance();
  NodeId right = parenthesised ? argument(false) : factor();
  return right == kNoNode ? fail("a modulus is missing") : make(Kind::call, {left, right}, Function::mod);
}

// The text between \begin and the first cell: {name}, [t] and the columns of an array.
bool Parser::environment_head(std::string& name) {
  advance();
  if (!take_symbol('{')) return fail("an environment without a name"), false;
  while (peek().kind == TokenKind::word || is_symbol('*')) {
    if (peek().kind == TokenKind::word) name += peek().text;
    advance();
  }
  if (!take_symbol('}')) return fail("an environment without a name"), false;
  if (is_symbol('[')) {  // [t]
    while (!is_symbol(']') && peek().kind != TokenKind::end && name != "bmatrix" && name != "pmatrix") advance();
    take_symbol(']');
  }
  if ((name == "array" || name == "tabular" || name == "alignedat" || name == "alignat") && is_symbol('{')) {
    while (!is_symbol('}') && peek().kind != TokenKind::end) advance();
    advance();
  }
  return true;
}

// x &= 1 of aligned lines: the mark is inside an item.
void Parser::drop_marks_of_line() {
  for (size_t k = at_; k + 1 < tokens_.size() && tokens_[k].kind != TokenKind::row; ++k) {
    bool mark = tokens_[k].kind == TokenKind::symbol && tokens_[k].symbol == '&';
    if (mark) tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(k));
    if (tokens_[k].kind == TokenKind::command && tokens_[k].command->meaning == Meaning::end) break;
  }
}

// "if n is even" behind a value of cases, as text; kNoNode without failing where a formula is.
NodeId Parser::condition_in_words() {
  if (peek().kind == TokenKind::word && in_words("if when for where", lower_case(peek().text))) advance();
  size_t end = at_;
  bool words = false;
  for (int depth = 0; tokens_[end].kind != TokenKind::end && tokens_[end].kind != TokenKind::row; ++end) {
    const Token& token = tokens_[end];
    bool symbol = token.kind == TokenKind::symbol;
    if (symbol) depth += token.symbol == '{' ? 1 : token.symbol == '}' ? -1 : 0;
    bool closes = token.kind == TokenKind::command && token.command->meaning == Meaning::end;
    if (depth == 0 && (closes || (symbol && token.symbol == '&'))) break;
    words |= token.kind == TokenKind::word && token.text.size() > 1 && conjunction(token.text) == '\0' &&
             (token.style == Style::text || token.style == Style::roman);
  }
  if (!words) return kNoNode;
  auto verb = [](const Token& token) { return token.kind == TokenKind::word && in_words("is are", token.text); };
  auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(at_),
       to = tokens_.begin() + static_cast<std::ptrdiff_t>(end);
  to = tokens_.erase(std::remove_if(from, to, verb), to);  // "n is even", "n even"
  NodeId text = text_of(at_, static_cast<size_t>(to - tokens_.begin()));
  at_ = static_cast<size_t>(to - tokens_.begin());
  return text;
}

// The cells up to \end and how many each row has; false after a failure.
bool Parser::cells(bool aligned, bool cases, std::vector<NodeId>& cells, std::vector<size_t>& widths) {
  size_t width = 0;
  while (!failed_ && !is_command(Meaning::end)) {
    if (peek().kind == TokenKind::end) return fail("an environment is not closed"), false;
    if (peek().kind == TokenKind::row) {
      if (width > 0) widths.push_back(width);
      width = 0;
      advance();
      continue;
    }
    if (aligned && take_symbol('&')) continue;
    if (aligned) drop_marks_of_line();
    NodeId cell = cases && width == 1 ? condition_in_words() : kNoNode;
    Items inner;
    if (cell == kNoNode && !items(inner)) return false;
    if (cell == kNoNode) cell = list_of(inner);
    if (cell == kNoNode) return false;
    cells.push_back(cell);
    ++width;
    bool empty = !aligned && take_symbol('&') && (peek().kind == TokenKind::row || is_command(Meaning::end));
    if (empty) return fail("an empty cell"), false;
  }
  if (width > 0) widths.push_back(width);
  return !failed_;
}

// Matrices of all brackets; lines of equations become a list; cases a call of "cases" with value, condition, value ..
NodeId Parser::environment() {
  std::string name;
  if (!environment_head(name)) return kNoNode;
  struct Name {
    std::string_view name;
    Bracket bracket;
  };
  constexpr Name kMatrices[] = {
      {"pmatrix", Bracket::round},      {"bmatrix", Bracket::square},     {"vmatrix", Bracket::bar},
      {"matrix", Bracket::none},        {"Bmatrix", Bracket::curly},      {"array", Bracket::none},
      {"smallmatrix", Bracket::none},   {"Vmatrix", Bracket::bar},        {"tabular", Bracket::none},
      {"psmallmatrix", Bracket::round}, {"bsmallmatrix", Bracket::square}};
  const Name* matrix =
      std::find_if(std::begin(kMatrices), std::end(kMatrices), [&](const Name& n) { return n.name == name; });
  bool is_matrix = matrix != std::end(kMatrices), cases = name == "cases" || name == "dcases" || name == "rcases";
  if (!is_matrix && !cases && !name.starts_with("align") && name != "gathered" && name != "gather" && name != "split" &&
      name != "equation") {
    return fail(str("the environment ", name.substr(0, 24)));
  }
  if (!enter()) return kNoNode;
  BarScope scope(*this);
  bool outer = std::exchange(in_environment_, true);
  std::vector<NodeId> all;
  std::vector<size_t> widths;
  if (!cells(!is_matrix && !cases, cases, all, widths)) return fail("an empty environment");
  advance();  // \end
  if (take_symbol('{')) {
    while (!is_symbol('}') && peek().kind != TokenKind::end) advance();
    take_symbol('}');
  }
  in_environment_ = outer;
  leave();
  if (all.empty()) return fail("an empty environment");
  bool even = std::all_of(widths.begin(), widths.end(), [&](size_t w) { return w == widths[0]; });
  if (is_matrix) {
    if (!even) return fail("rows of different lengths");
    return make(Kind::matrix, matrix->bracket, all, {}, static_cast<int32_t>(widths.size()));
  }
  if (cases && even && widths[0] == 2) return make(Kind::call, Function::user, all, "cases");
  if (all.size() == 1) return all[0];
  return make(Kind::list, Connective::semicolon, all);
}

NodeId Parser::wrap_matrix(NodeId matrix, char open) {
  Bracket bracket = open == '('   ? Bracket::round
                    : open == '[' ? Bracket::square
                    : open == '|' ? Bracket::bar
                                  : Bracket::curly;
  std::vector<NodeId> cells(tree_.children(matrix).begin(), tree_.children(matrix).end());
  return make(Kind::matrix, bracket, cells, {}, tree_[matrix].value);
}

// ( [ ] and the commands \lfloor \lceil \langle \lvert \lVert, by one letter each.
NodeId Parser::bracket(char open) {
  if (!enter()) return kNoNode;
  advance();
  BarScope scope(*this);
  Inside inside(*this);
  Items inner;
  std::vector<NodeId> conditions;
  bool clause_only = open == '(' && peek().kind == TokenKind::word && integer_clause(conditions);  // (k is an integer)
  if (!clause_only && !items(inner)) return kNoNode;
  leave();
  if (clause_only) {
    if (!take_symbol(')') || conditions.empty()) return fail("a clause in brackets");
    for (size_t i = 1; i < conditions.size(); ++i) conditions_.push_back(conditions[i]);
    return conditions[0];
  }
  char close = 0;
  const Token& token = peek();
  if (token.kind == TokenKind::symbol && (token.symbol == ')' || token.symbol == ']' || token.symbol == '[')) {
    close = token.symbol;
  } else if (is_command(Meaning::closing)) {
    close = static_cast<char>(token.command->value);
  }
  bool word_bracket = open != '(' && open != '[' && open != ']';
  if (close == 0 || (word_bracket && close != open) ||
      (!word_bracket && close != ')' && close != ']' && close != '[')) {
    return fail("a bracket is not closed");
  }
  advance();
  return close_bracket(open, close, inner);
}

NodeId Parser::close_bracket(char open, char close, Items& inner) {
  size_t count = inner.nodes.size();
  NodeId single = count == 1 ? inner.nodes[0] : kNoNode;
  switch (open) {
    case 'f':
      return count == 1 ? make(Kind::call, {single}, Function::floor) : fail("a floor of a list");
    case 'c':
      return count == 1 ? make(Kind::call, {single}, Function::ceil) : fail("a ceiling of a list");
    case 'a':
      return make(Kind::tuple, Bracket::angle, inner.nodes);
    case '|':
      if (count != 1) return fail("an absolute value of a list");
      return kind(single) == Kind::matrix ? wrap_matrix(single, '|') : make(Kind::call, {single}, Function::abs);
    case 'V':
      return count == 1 ? make(Kind::call, {single}, Function::norm) : fail("a norm of a list");
    default:
      break;
  }
  bool left_closed = open == '[', right_closed = close == ']';
  bool same = (open == '(' && close == ')') || (open == '[' && close == ']');
  if (count == 1) {
    if (!same) return fail("an interval with one end");
    return kind(single) == Kind::matrix ? wrap_matrix(single, open) : single;
  }
  bool relations =
      std::all_of(inner.nodes.begin(), inner.nodes.end(), [&](NodeId n) { return kind(n) == Kind::relation; });
  bool words = inner.connective == Connective::conj_or || inner.connective == Connective::conj_and;
  if (same && (relations || words)) return list_of(inner);
  auto infinite = [&](NodeId n) {
    if (kind(n) == Kind::negate || kind(n) == Kind::plus_minus) n = tree_.child(n, 0);
    return is_constant(n, Constant::infinity);
  };
  if (count == 2) {
    bool interval = !same || open == '[' || infinite(inner.nodes[0]) || infinite(inner.nodes[1]);
    if (!interval) return make(Kind::tuple, Bracket::round, inner.nodes);
    uint8_t ends = static_cast<uint8_t>((left_closed ? kLeftClosed : 0) | (right_closed ? kRightClosed : 0));
    return make(Kind::interval, ends, inner.nodes);
  }
  if (!same) return fail("an interval with more than two ends");
  return make(Kind::tuple, open == '(' ? Bracket::round : Bracket::square, inner.nodes);
}

NodeId Parser::bars(char kind_of_bar) {
  if (!enter()) return kNoNode;
  advance();
  NodeId inside = kNoNode;
  {
    BarScope scope(*this, 1);
    inside = sum();
  }
  leave();
  if (inside == kNoNode) return kNoNode;
  if (!take_symbol(kind_of_bar)) return fail("a bar is not closed");
  if (kind_of_bar == 'V') return make(Kind::call, {inside}, Function::norm);
  return kind(inside) == Kind::matrix ? wrap_matrix(inside, '|') : make(Kind::call, {inside}, Function::abs);
}

// \{1, 2\}, \{x \mid x > 0\}, and the brace of a system of equations that nothing closes.
NodeId Parser::curly() {
  if (!enter()) return kNoNode;
  advance();
  Inside inside(*this);
  auto closes = [&] { return is_command(Meaning::closing) && peek().command->value == '{'; };
  if (closes()) {
    advance();
    leave();
    return make(Kind::set, {});
  }
  Items elements;
  NodeId condition = kNoNode;
  bool system = is_command(Meaning::begin);
  {
    BarScope scope(*this, 0, true);
    if (!items(elements)) return kNoNode;
  }
  if (take_symbol('|') || take_symbol(':')) {
    BarScope scope(*this);
    Items conditions;
    if (!items(conditions)) return kNoNode;
    condition = list_of(conditions);
  }
  leave();
  if (!closes()) {
    if (system && elements.nodes.size() == 1 && condition == kNoNode) {
      NodeId rows = elements.nodes[0];
      if (kind(rows) != Kind::matrix) return rows;
      std::vector<NodeId> lines(tree_.children(rows).begin(), tree_.children(rows).end());
      bool equations = std::all_of(lines.begin(), lines.end(), [&](NodeId n) { return kind(n) == Kind::relation; });
      return equations ? make(Kind::list, Connective::semicolon, lines) : rows;
    }
    return fail("a set is not closed");
  }
  advance();
  if (condition != kNoNode) {
    NodeId element = list_of(elements);
    return make(Kind::set_builder, {element, condition});
  }
  return make(Kind::set, 0, elements.nodes);
}

// { .. } of LaTeX only groups; with a bar inside it is a set whose backslashes are missing.
NodeId Parser::group() {
  if (!enter()) return kNoNode;
  advance();
  Inside inside(*this);
  Items inner;
  NodeId condition = kNoNode, out = kNoNode;
  if (is_symbol('}')) return fail("an empty group");
  // {x | x > 0}: the whole answer, a variable, a bar or a colon.
  bool bare_set = at_ == 1 && peek().kind == TokenKind::word && (is_symbol('|', 1) || is_symbol(':', 1));
  {
    BarScope scope(*this, 0, set_bar_ || bare_set);
    if (!items(inner)) return kNoNode;
  }
  if (bare_set && (is_symbol('|') || is_symbol(':'))) {
    advance();
    BarScope scope(*this);
    Items conditions;
    if (!items(conditions)) return kNoNode;
    condition = list_of(conditions);
    out = make(Kind::set_builder, {list_of(inner), condition});
  } else if (is_command(Meaning::choose) || is_command(Meaning::over)) {
    bool over = is_command(Meaning::over);
    advance();
    Items bottom;
    if (!items(bottom)) return kNoNode;
    NodeId n = list_of(inner), k = list_of(bottom);
    out = over ? make(Kind::quotient, {n, k}) : make(Kind::call, {n, k}, Function::binomial);
  } else {
    out = list_of(inner);
  }
  leave();
  if (!take_symbol('}')) return fail("a group is not closed");
  return out;
}

}  // namespace ucas::math
