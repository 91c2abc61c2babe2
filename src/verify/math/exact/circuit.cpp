#include "verify/math/exact/exact.h"

#include <numeric>
#include <utility>

namespace ucas::math {

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h ^= h >> 31;
  return h * 0xbf58476d1ce4e5b9ULL;
}

uint64_t text_hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

using Wide = __int128;

// numerator / denominator in lowest terms, denominator 0 where it does not fit.
void reduce(Wide n, Wide d, CircuitNode& node) {
  if (d == 0) return;
  if (d < 0) n = -n, d = -d;
  Wide x = n < 0 ? -n : n, y = d;
  while (y != 0) x = std::exchange(y, x % y);
  n /= x, d /= x;
  constexpr Wide kLimit = Wide{1} << 62;
  if (n >= kLimit || n <= -kLimit || d >= kLimit) return;
  node.numerator = static_cast<int64_t>(n);
  node.denominator = static_cast<int64_t>(d);
}

// Small rationals are worked out while the circuit is built: exponents and roots are read from them.
void fold(CircuitOp op, const CircuitNode& a, const CircuitNode& b, CircuitNode& node) {
  if (a.denominator == 0 || b.denominator == 0) return;
  Wide p = a.numerator, q = a.denominator, r = b.numerator, s = b.denominator;
  switch (op) {
    case CircuitOp::add:
    case CircuitOp::sub: {
      // |p|, q, |r|, s < 2^62: the two products fit, their sum as well
      Wide n = op == CircuitOp::add ? p * s + r * q : p * s - r * q;
      reduce(n, q * s, node);
      break;
    }
    case CircuitOp::mul:
      reduce(p * r, q * s, node);
      break;
    case CircuitOp::div:
      reduce(p * s, q * r, node);
      break;
    case CircuitOp::power: {
      if (s != 1 || r < -64 || r > 64 || (p == 0 && r <= 0)) return;
      CircuitNode power;
      power.numerator = power.denominator = 1;
      for (Wide k = 0; k < (r < 0 ? -r : r); ++k) {
        CircuitNode next;
        reduce(power.numerator * p, power.denominator * q, next);
        if (next.denominator == 0) return;
        power = next;
      }
      reduce(r < 0 ? power.denominator : power.numerator, r < 0 ? power.numerator : power.denominator, node);
      break;
    }
    default:
      break;
  }
}

// Functions of small rationals that are such again. Floors of exact numbers must not depend on a ball.
void fold_function(CircuitOp op, const CircuitNode& x, CircuitNode& node) {
  int64_t p = x.numerator, q = x.denominator, whole = p / q - (p % q < 0);
  Wide factorial = 1;
  switch (op) {
    case CircuitOp::abs:
      return reduce(p < 0 ? -p : p, q, node);
    case CircuitOp::floor:
      return reduce(whole, 1, node);
    case CircuitOp::ceil:
      return reduce(whole + (whole * q != p), 1, node);
    case CircuitOp::factorial:
      if (q != 1 || p < 0 || p > 19) return;
      for (int64_t k = 2; k <= p; ++k) factorial *= k;
      return reduce(factorial, 1, node);
    case CircuitOp::sin:
    case CircuitOp::tan:
    case CircuitOp::arcsin:
    case CircuitOp::arctan:
      if (p == 0) reduce(0, 1, node);
      return;
    case CircuitOp::cos:
    case CircuitOp::exp:
      if (p == 0) reduce(1, 1, node);
      return;
    case CircuitOp::ln:
      if (p == q) reduce(0, 1, node);
      return;
    default:
      return;
  }
}

}  // namespace

int Circuit::intern(CircuitNode node) {
  // A small rational is one node, however it came about.
  if (node.denominator != 0) {
    CircuitNode plain;
    plain.numerator = node.numerator;
    plain.denominator = node.denominator;
    node = plain;
  }
  uint64_t h = mix(static_cast<uint64_t>(node.op), node.name);
  h = mix(mix(h, static_cast<uint64_t>(node.a)), static_cast<uint64_t>(node.b));
  h = mix(mix(h, static_cast<uint64_t>(node.numerator)), static_cast<uint64_t>(node.denominator));
  h = mix(mix(h, text_hash(node.digits)), static_cast<uint64_t>(node.exponent));
  auto [first, last] = index_.equal_range(h);
  for (auto it = first; it != last; ++it) {
    const CircuitNode& known = nodes_[it->second];
    if (known.op == node.op && known.a == node.a && known.b == node.b && known.numerator == node.numerator &&
        known.denominator == node.denominator && known.name == node.name && known.exponent == node.exponent &&
        known.digits == node.digits) {
      return it->second;
    }
  }
  nodes_.push_back(std::move(node));
  index_.emplace(h, size() - 1);
  return size() - 1;
}

int Circuit::constant(int64_t value) { return rational(value, 1); }

int Circuit::rational(int64_t numerator, int64_t denominator) {
  CircuitNode node;
  reduce(numerator, denominator, node);
  if (node.denominator == 0) return div(constant(1), constant(0));
  return intern(std::move(node));
}

int Circuit::constant(std::string_view digits, int64_t exponent) {
  while (!digits.empty() && digits.front() == '0') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == '0') digits.remove_suffix(1), ++exponent;
  if (digits.empty()) return constant(0);
  auto places = static_cast<int64_t>(digits.size());
  if (places <= 18 && exponent >= -18 && places + exponent <= 18) {
    int64_t value = 0, scale = 1;
    for (char c : digits) value = value * 10 + (c - '0');
    for (int64_t k = exponent; k > 0; --k) value *= 10;
    for (int64_t k = exponent; k < 0; ++k) scale *= 10;
    return rational(value, scale);
  }
  CircuitNode node;
  node.digits = digits;
  node.exponent = exponent;
  return intern(std::move(node));
}

int Circuit::variable(std::string_view name) {
  CircuitNode node;
  node.op = CircuitOp::variable;
  node.name = text_hash(name);
  node.open = true;
  return intern(std::move(node));
}

int Circuit::leaf(CircuitOp op) {
  CircuitNode node;
  node.op = op;
  node.rational = false;
  node.complex = op == CircuitOp::i;
  return intern(std::move(node));
}

int Circuit::apply(CircuitOp op, int a, int b) {
  CircuitNode node;
  node.op = op;
  node.a = a;
  node.b = b;
  const CircuitNode& left = (*this)[a];
  const CircuitNode& right = (*this)[b < 0 ? a : b];
  node.open = left.open || right.open;
  node.complex = left.complex || right.complex;
  node.opaque = left.opaque || right.opaque;
  node.rational = left.rational && right.rational;
  if (op > CircuitOp::power) node.rational = false;
  if (op == CircuitOp::power && right.denominator != 1) node.rational = false;
  if (b >= 0) fold(op, left, right, node);
  if (b < 0 && left.denominator != 0) fold_function(op, left, node);
  if (op == CircuitOp::exp && left.denominator == 1 && left.numerator == 1) return leaf(CircuitOp::e);
  // x + 0, 1 x, x / 1, x^1
  if (b >= 0 && right.denominator == 1) {
    if (right.numerator == 0 && (op == CircuitOp::add || op == CircuitOp::sub)) return a;
    if (right.numerator == 1 && (op == CircuitOp::mul || op == CircuitOp::div || op == CircuitOp::power)) return a;
  }
  if (b >= 0 && left.denominator == 1) {
    if (left.numerator == 0 && op == CircuitOp::add) return b;
    if (left.numerator == 1 && op == CircuitOp::mul) return b;
  }
  if ((op == CircuitOp::add || op == CircuitOp::mul) && node.a > node.b) std::swap(node.a, node.b);
  return intern(std::move(node));
}

int Circuit::opaque(std::string_view name, const std::vector<int>& arguments) {
  int list = constant(static_cast<int64_t>(arguments.size()));
  for (int argument : arguments) {
    CircuitNode node;
    node.op = CircuitOp::opaque;
    node.a = list;
    node.b = argument;
    node.name = text_hash(name);
    node.rational = false;
    node.opaque = true;
    node.open = (*this)[list].open || (*this)[argument].open;
    list = intern(std::move(node));
  }
  if (arguments.empty()) return variable(name);
  return list;
}

}  // namespace ucas::math
