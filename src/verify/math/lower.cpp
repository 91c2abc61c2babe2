#include "verify/math/lower.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace ucas::math {

namespace {

bool is_angle_function(Function f) { return f >= Function::sin && f <= Function::cot; }

// Functions of one argument that a circuit has as such; nullopt for the others.
std::optional<CircuitOp> operation_of(Function function) {
  switch (function) {
    case Function::sinh:
      return CircuitOp::sinh;
    case Function::cosh:
      return CircuitOp::cosh;
    case Function::tanh:
      return CircuitOp::tanh;
    case Function::ln:
      return CircuitOp::ln;
    case Function::exp:
      return CircuitOp::exp;
    case Function::abs:
    case Function::norm:
      return CircuitOp::abs;
    case Function::floor:
      return CircuitOp::floor;
    case Function::ceil:
      return CircuitOp::ceil;
    case Function::factorial:
      return CircuitOp::factorial;
    default:
      return std::nullopt;
  }
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
  return circuit.apply(CircuitOp::add, head, circuit.apply(CircuitOp::div, period, nines));
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
    value = circuit.apply(CircuitOp::add, circuit.apply(CircuitOp::mul, value, radix), circuit.constant(digit));
    places += point;
  }
  if (places == 0) return value;
  return circuit.apply(CircuitOp::div, value, circuit.apply(CircuitOp::power, radix, circuit.constant(places)));
}

int Lowering::trigonometric(Function function, int x) {
  int one = circuit.constant(1);
  auto inverse = [&](int y) { return circuit.apply(CircuitOp::div, one, y); };
  switch (function) {
    case Function::sin:
      return circuit.apply(CircuitOp::sin, x);
    case Function::cos:
      return circuit.apply(CircuitOp::cos, x);
    case Function::tan:
      return circuit.apply(CircuitOp::tan, x);
    case Function::sec:
      return inverse(circuit.apply(CircuitOp::cos, x));
    case Function::csc:
      return inverse(circuit.apply(CircuitOp::sin, x));
    case Function::cot:
      return inverse(circuit.apply(CircuitOp::tan, x));
    case Function::arcsin:
      return circuit.apply(CircuitOp::arcsin, x);
    case Function::arccos:
      return circuit.apply(CircuitOp::arccos, x);
    case Function::arctan:
      return circuit.apply(CircuitOp::arctan, x);
    case Function::arcsec:
      return circuit.apply(CircuitOp::arccos, inverse(x));
    case Function::arccsc:
      return circuit.apply(CircuitOp::arcsin, inverse(x));
    case Function::arccot: {
      int quarter = circuit.apply(CircuitOp::div, circuit.leaf(CircuitOp::pi), circuit.constant(2));
      return circuit.apply(CircuitOp::sub, quarter, circuit.apply(CircuitOp::arctan, x));
    }
    default:
      return -1;
  }
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
    for (int64_t k = at(0); k > 1; k -= 2) value = circuit.apply(CircuitOp::mul, value, circuit.constant(k));
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
  if (auto op = operation_of(function)) return x.size() == 1 ? circuit.apply(*op, x[0]) : -1;
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
      return circuit.apply(CircuitOp::power, x[1], circuit.apply(CircuitOp::div, circuit.constant(1), x[0]));
    case Function::log:
      if (x.size() == 1) return circuit.apply(CircuitOp::ln, x[0]);
      return circuit.apply(CircuitOp::div, circuit.apply(CircuitOp::ln, x[1]), circuit.apply(CircuitOp::ln, x[0]));
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
      return x.size() == 1 ? trigonometric(function, x[0]) : -1;
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
      int term = circuit.apply(CircuitOp::mul, cells[row * size + column], self(self, row + 1, used | 1u << column));
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
  return value < 0 ? -1 : circuit.apply(CircuitOp::mul, value, circuit.rational(numerator, denominator));
}

int Lowering::power(NodeId id) {
  NodeId base = tree.child(id, 0);
  bool of_e = tree[base].kind == Kind::constant && tree[base].tag == static_cast<uint8_t>(Constant::e);
  if (!of_e) return fold(CircuitOp::power, id);
  int exponent = (*this)(tree.child(id, 1));
  return exponent < 0 ? -1 : circuit.apply(CircuitOp::exp, exponent);
}

int Lowering::degree(NodeId id) {
  int value = (*this)(tree.child(id, 0));
  if (value < 0 || !in_angle_) return value;
  int unit = circuit.apply(CircuitOp::div, circuit.leaf(CircuitOp::pi), circuit.constant(180));
  return circuit.apply(CircuitOp::mul, value, unit);
}

int Lowering::quantity(NodeId id) {
  int value = (*this)(tree.child(id, 0));
  NodeId unit = tree.child(id, 1);
  if (value < 0 || tree[unit].child_count == 0) return value;
  int factor = (*this)(tree.child(unit, 0));
  return factor < 0 ? value : circuit.apply(CircuitOp::mul, value, factor);
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
      if (node.tag == static_cast<uint8_t>(Constant::pi)) return circuit.leaf(CircuitOp::pi);
      if (node.tag == static_cast<uint8_t>(Constant::e)) return circuit.leaf(CircuitOp::e);
      if (node.tag == static_cast<uint8_t>(Constant::i)) return circuit.leaf(CircuitOp::i);
      return -1;
    case Kind::sum:
      return fold(CircuitOp::add, id);
    case Kind::product:
      return fold(CircuitOp::mul, id);
    case Kind::quotient:
      return fold(CircuitOp::div, id);
    case Kind::ratio:
      return node.child_count == 2 && tree.text(id).empty() ? fold(CircuitOp::div, id) : -1;
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
      return node.tag == static_cast<uint8_t>(Bracket::bar) ? determinant(id) : -1;
    default:
      return -1;
  }
}

}  // namespace ucas::math
