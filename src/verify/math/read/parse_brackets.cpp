// Everything between brackets, and which of a group, a pair, an interval, a set or a matrix it is.
#include <algorithm>

#include "base/str.h"
#include "verify/math/read/parser_impl.h"

namespace ucas::math {

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
