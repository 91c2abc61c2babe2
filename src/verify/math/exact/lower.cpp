#include "verify/math/exact/exact.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ucas::math {

namespace {

bool is_angle_function(Function f) { return f >= Function::sin && f <= Function::cot; }

// Functions of one argument that a circuit has as such, perhaps with 1 / x on the way.
struct Operation {
  enum class Inverse : uint8_t { none, argument, result };
  Function function;
  CircuitOp op;
  Inverse inverse = Inverse::none;
};
const Operation* operation_of(Function function) {
  using Inverse = Operation::Inverse;
  static constexpr Operation kOperations[] = {
      {Function::sin, CircuitOp::sin},
      {Function::cos, CircuitOp::cos},
      {Function::tan, CircuitOp::tan},
      {Function::sec, CircuitOp::cos, Inverse::result},
      {Function::csc, CircuitOp::sin, Inverse::result},
      {Function::cot, CircuitOp::tan, Inverse::result},
      {Function::arcsin, CircuitOp::arcsin},
      {Function::arccos, CircuitOp::arccos},
      {Function::arctan, CircuitOp::arctan},
      {Function::arcsec, CircuitOp::arccos, Inverse::argument},
      {Function::arccsc, CircuitOp::arcsin, Inverse::argument},
      {Function::ln, CircuitOp::ln},
      {Function::exp, CircuitOp::exp},
      {Function::abs, CircuitOp::abs},
      {Function::norm, CircuitOp::abs},
      {Function::floor, CircuitOp::floor},
      {Function::ceil, CircuitOp::ceil},
      {Function::factorial, CircuitOp::factorial},
  };
  auto is_it = [&](const Operation& row) { return row.function == function; };
  auto at = std::find_if(std::begin(kOperations), std::end(kOperations), is_it);
  return at == std::end(kOperations) ? nullptr : at;
}

template <class Visit>
void each_below(const Tree& tree, NodeId root, const Visit& visit) {
  std::vector<NodeId> open{root};
  while (!open.empty()) {
    NodeId id = open.back();
    open.pop_back();
    visit(id);
    auto children = tree.children(id);
    open.insert(open.end(), children.rbegin(), children.rend());
  }
}

}  // namespace

int sign_bit(const Tree& tree, NodeId id) {
  int bit = 0;
  for (NodeId n = 0; n < id; ++n) bit += tree[n].kind == Kind::plus_minus;
  return bit;
}

uint32_t signs_below(const Tree& tree, NodeId id) {
  uint32_t bits = 0;
  each_below(tree, id, [&](NodeId n) {
    if (tree[n].kind == Kind::plus_minus) bits |= uint32_t{1} << std::min(sign_bit(tree, n), 31);
  });
  return bits;
}

bool has_minus_plus(const Tree& tree, NodeId id) {
  bool found = false;
  each_below(tree, id, [&](NodeId n) { found |= tree[n].kind == Kind::plus_minus && tree[n].tag == 1; });
  return found;
}

std::vector<std::string> symbols_of(const Tree& tree, NodeId id) {
  std::vector<std::string> names;
  each_below(tree, id, [&](NodeId n) {
    if (tree[n].kind != Kind::symbol) return;
    if (std::find(names.begin(), names.end(), tree.text(n)) == names.end()) names.emplace_back(tree.text(n));
  });
  return names;
}

int Lowering::number(const Node& node, std::string_view text) {
  std::string digits;
  int64_t places = 0;
  bool point = false;
  for (char c : text) {
    if (c == '.') {
      point = true;
    } else if (c >= '0' && c <= '9') {
      digits += c;
      places += point;
    } else {
      return -1;
    }
  }
  int32_t repeat = node.number.repeat;
  if (repeat <= 0 || repeat > places) return circuit.constant(digits, node.number.exponent - places);
  // 0.1\overline{6}: the digits once, plus the period over 99..9
  auto kept = digits.size() - static_cast<size_t>(repeat);
  int head = circuit.constant(std::string_view(digits).substr(0, kept), node.number.exponent - places + repeat);
  int period = circuit.constant(std::string_view(digits).substr(kept), node.number.exponent - places + repeat);
  int nines = circuit.constant(std::string(static_cast<size_t>(repeat), '9'), 0);
  return circuit.add(head, circuit.div(period, nines));
}

int Lowering::based(std::string_view digits, int base) {
  if (base < 2 || base > 36) return -1;
  int value = circuit.constant(0), radix = circuit.constant(base), places = 0;
  bool point = false;
  for (char c : digits) {
    if (c == '.') {
      point = true;
      continue;
    }
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
    if (digit >= base) return -1;
    value = circuit.add(circuit.mul(value, radix), circuit.constant(digit));
    places += point;
  }
  if (places == 0) return value;
  return circuit.div(value, circuit.apply(CircuitOp::power, radix, circuit.constant(places)));
}

int Lowering::operation(Function function, int x) {
  if (function == Function::arccot) {
    int quarter = circuit.div(circuit.leaf(CircuitOp::pi), circuit.constant(2));
    return circuit.sub(quarter, circuit.apply(CircuitOp::arctan, x));
  }
  if (function >= Function::sinh && function <= Function::csch) {  // by exponentials, whose sizes count
    bool quotient = function == Function::tanh || function == Function::coth;
    int up = circuit.apply(CircuitOp::exp, quotient ? circuit.add(x, x) : x);
    int down = quotient ? circuit.constant(1) : circuit.div(circuit.constant(1), up);
    int difference = circuit.sub(up, down), sum = circuit.add(up, down);
    if (quotient) return function == Function::tanh ? circuit.div(difference, sum) : circuit.div(sum, difference);
    int twice = function == Function::sinh || function == Function::csch ? difference : sum;
    return function > Function::coth ? circuit.div(circuit.constant(2), twice)
                                     : circuit.div(twice, circuit.constant(2));
  }
  if (function >= Function::arsinh && function <= Function::arcsch) {  // by logarithms
    const int one = circuit.constant(1);
    if (function >= Function::arcoth) x = circuit.div(one, x);
    if (function == Function::artanh || function == Function::arcoth) {
      int quotient = circuit.div(circuit.add(one, x), circuit.sub(one, x));
      return circuit.div(circuit.apply(CircuitOp::ln, quotient), circuit.constant(2));
    }
    bool minus = function == Function::arcosh || function == Function::arsech;
    int square = circuit.mul(x, x), under = minus ? circuit.sub(square, one) : circuit.add(square, one);
    return circuit.apply(CircuitOp::ln, circuit.add(x, circuit.root(under, 2)));
  }
  const Operation* operation = operation_of(function);
  if (operation == nullptr) return -1;
  auto inverse = [&](int y) { return circuit.div(circuit.constant(1), y); };
  if (operation->inverse == Operation::Inverse::argument) x = inverse(x);
  int value = circuit.apply(operation->op, x);
  return operation->inverse == Operation::Inverse::result ? inverse(value) : value;
}

int Lowering::integer_function(Function function, const std::vector<int>& arguments) {
  bool known = !arguments.empty();
  for (int n : arguments) known &= circuit[n].denominator == 1;
  auto at = [&](size_t k) { return circuit[arguments[k]].numerator; };
  if (known && (function == Function::gcd || function == Function::lcm)) {
    int64_t result = at(0);
    for (size_t k = 1; k < arguments.size(); ++k) {
      int64_t divisor = std::gcd(result, at(k));
      if (function == Function::gcd) {
        result = divisor;
      } else {
        if (divisor == 0 || __builtin_mul_overflow(result / divisor, at(k), &result)) return -1;
        if (result == INT64_MIN || result > (int64_t{1} << 61) || result < -(int64_t{1} << 61)) return -1;
      }
    }
    return circuit.constant(result < 0 ? -result : result);
  }
  if (known && function == Function::mod && arguments.size() == 2 && at(1) > 0) {
    return circuit.constant(((at(0) % at(1)) + at(1)) % at(1));
  }
  if (known && function == Function::double_factorial && at(0) >= 0 && at(0) <= 1000) {
    int value = circuit.constant(1);
    for (int64_t k = at(0); k > 1; k -= 2) value = circuit.mul(value, circuit.constant(k));
    return value;
  }
  std::vector<int> ordered = arguments;
  if (function != Function::mod) std::sort(ordered.begin(), ordered.end());
  return circuit.opaque(name_of(function), ordered);
}

int Lowering::call(NodeId id) {
  auto function = static_cast<Function>(tree[id].tag);
  bool outer = std::exchange(in_angle_, is_angle_function(function));
  std::vector<int> x;
  for (NodeId child : tree.children(id)) {
    x.push_back((*this)(child));
    if (x.back() < 0) break;
  }
  in_angle_ = outer;
  if (x.empty() || x.back() < 0) return -1;
  auto several = [&](CircuitOp op) {
    int value = x[0];
    for (size_t k = 1; k < x.size(); ++k) value = circuit.apply(op, value, x[k]);
    return value;
  };
  switch (function) {
    case Function::sqrt:
      return circuit.root(x[0], 2);
    case Function::root:
      if (x.size() != 2) return -1;
      return circuit.apply(CircuitOp::power, x[1], circuit.div(circuit.constant(1), x[0]));
    case Function::log:
      if (x.size() == 1) return circuit.apply(CircuitOp::ln, x[0]);
      return circuit.div(circuit.apply(CircuitOp::ln, x[1]), circuit.apply(CircuitOp::ln, x[0]));
    case Function::binomial:
      return x.size() == 2 ? circuit.apply(CircuitOp::binomial, x[0], x[1]) : -1;
    case Function::min:
      return several(CircuitOp::minimum);
    case Function::max:
      return several(CircuitOp::maximum);
    case Function::gcd:
    case Function::lcm:
    case Function::mod:
    case Function::double_factorial:
      return integer_function(function, x);
    case Function::conjugate:
    case Function::real_part:
    case Function::imaginary_part:
    case Function::sign:
    case Function::arg:
      return circuit.opaque(name_of(function), x);
    case Function::user:
      return circuit.opaque(tree.text(id), x);
    default:
      return x.size() == 1 ? operation(function, x[0]) : -1;
  }
}

// Of up to four rows, along the first row; -1 for anything else.
int Lowering::determinant(NodeId id) {
  auto size = static_cast<size_t>(tree[id].value);
  auto children = tree.children(id);
  if (size < 1 || size > 4 || children.size() != size * size) return -1;
  std::vector<int> cells;
  for (NodeId child : children) {
    cells.push_back((*this)(child));
    if (cells.back() < 0) return -1;
  }
  auto minor = [&](auto& self, size_t row, uint32_t used) -> int {
    if (row == size) return circuit.constant(1);
    int sum = circuit.constant(0);
    bool minus = false;
    for (size_t column = 0; column < size; ++column) {
      if (used >> column & 1) continue;
      int term = circuit.mul(cells[row * size + column], self(self, row + 1, used | 1u << column));
      sum = circuit.apply(minus ? CircuitOp::sub : CircuitOp::add, sum, term);
      minus = !minus;
    }
    return sum;
  };
  return minor(minor, 0, 0);
}

int Lowering::symbol(std::string_view name) {
  if (substituted >= 0 && name == substitute) return substituted;
  if (renamed != nullptr) {
    for (const Renaming& r : *renamed) {
      if (r.from == name) return circuit.variable(r.to);
    }
  }
  return circuit.variable(name);
}

// The children joined by one operation, from left to right.
int Lowering::fold(CircuitOp op, NodeId id) {
  auto children = tree.children(id);
  int value = children.empty() ? -1 : (*this)(children[0]);
  for (size_t k = 1; k < children.size() && value >= 0; ++k) {
    int next = (*this)(children[k]);
    value = next < 0 ? -1 : circuit.apply(op, value, next);
  }
  return value;
}

int Lowering::scaled(NodeId id, int numerator, int denominator) {
  int value = (*this)(tree.child(id, 0));
  return value < 0 ? -1 : circuit.mul(value, circuit.rational(numerator, denominator));
}

int Lowering::power(NodeId id) {
  NodeId base = tree.child(id, 0);
  if (!tree[base].is(Constant::e)) return fold(CircuitOp::power, id);
  int exponent = (*this)(tree.child(id, 1));
  return exponent < 0 ? -1 : circuit.apply(CircuitOp::exp, exponent);
}

int Lowering::degree(NodeId id) {
  int value = (*this)(tree.child(id, 0));
  if (value < 0 || !in_angle_) return value;
  int unit = circuit.div(circuit.leaf(CircuitOp::pi), circuit.constant(180));
  return circuit.mul(value, unit);
}

int Lowering::quantity(NodeId id) {
  int value = (*this)(tree.child(id, 0));
  NodeId unit = tree.child(id, 1);
  if (value < 0 || tree[unit].child_count == 0) return value;
  int factor = (*this)(tree.child(unit, 0));
  return factor < 0 ? value : circuit.mul(value, factor);
}

int Lowering::operator()(NodeId id) {
  const Node& node = tree[id];
  switch (node.kind) {
    case Kind::number:
      return number(node, tree.text(id));
    case Kind::based:
      return based(tree.text(id), node.value);
    case Kind::symbol:
      return symbol(tree.text(id));
    case Kind::constant:
      return node.is(Constant::pi)  ? circuit.leaf(CircuitOp::pi)
             : node.is(Constant::e) ? circuit.leaf(CircuitOp::e)
             : node.is(Constant::i) ? circuit.leaf(CircuitOp::i)
                                    : -1;
    case Kind::sum:
      return fold(CircuitOp::add, id);
    case Kind::product:
      return fold(CircuitOp::mul, id);
    case Kind::quotient:
      return fold(CircuitOp::div, id);
    case Kind::ratio: {  // 0 to 1 is no ratio
      int value = node.child_count == 2 && tree.text(id).empty() ? fold(CircuitOp::div, id) : -1;
      return value >= 0 && circuit[value].numerator == 0 && circuit[value].denominator == 1 ? -1 : value;
    }
    case Kind::power:
      return power(id);
    case Kind::negate:
      return scaled(id, -1, 1);
    case Kind::plus_minus: {
      bool minus = (signs >> std::min(sign_bit(tree, id), 31) & 1) != 0;
      return scaled(id, minus != (node.tag == 1) ? -1 : 1, 1);
    }
    case Kind::call:
      return call(id);
    case Kind::percent:
      return scaled(id, 1, 100);
    case Kind::degree:
      return degree(id);
    case Kind::quantity:
      return quantity(id);
    case Kind::matrix:
      return node.has(Bracket::bar) ? determinant(id) : -1;
    default:
      return -1;
  }
}

}  // namespace ucas::math
