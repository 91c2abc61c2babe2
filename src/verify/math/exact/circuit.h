// Expressions as straight-line programs over numbers and variables: what exact arithmetic works on. Equal
// subexpressions are one node, so sharing costs nothing and "the same expression" is "the same index". Nothing is
// evaluated here; src/verify/math/exact/exact.h does that within a counted budget.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ucas::math {

// constant: digits * 10^exponent; opaque: a function of its arguments about which nothing is known, equal only where
// name and arguments are equal. proof.c numbers those up to arctan the same way.
// clang-format off
enum class CircuitOp : uint8_t {
  constant, variable, pi, e, i,
  add, sub, mul, div, power,
  exp, ln, sin, cos, tan, arcsin, arccos, arctan,
  abs, floor, ceil, factorial, binomial, minimum, maximum, opaque,
};
// clang-format on

struct CircuitNode {
  CircuitOp op = CircuitOp::constant;
  int32_t a = -1, b = -1;
  // The value as numerator / denominator where it is a rational that fits; denominator 0: not known to be one.
  int64_t numerator = 0, denominator = 0;
  uint64_t name = 0;     // of a variable or an opaque function
  std::string digits;    // of a constant: decimal digits without sign or leading zeros
  int64_t exponent = 0;  // of a constant
  bool rational = true;  // only + - * / and integer powers of constants and variables below
  bool open = false;     // a variable is below
  bool complex = false;  // i is below
  bool opaque = false;   // an opaque function is below: no numeric value
};

class Circuit {
 public:
  int constant(int64_t value);
  int constant(std::string_view digits, int64_t exponent);  // digits only, not negative
  int variable(std::string_view name);
  int leaf(CircuitOp op);  // pi, e, i
  int apply(CircuitOp op, int a, int b = -1);
  int opaque(std::string_view name, const std::vector<int>& arguments);
  int rational(int64_t numerator, int64_t denominator);
  int add(int a, int b) { return apply(CircuitOp::add, a, b); }
  int sub(int a, int b) { return apply(CircuitOp::sub, a, b); }
  int mul(int a, int b) { return apply(CircuitOp::mul, a, b); }
  int div(int a, int b) { return apply(CircuitOp::div, a, b); }
  int abs(int a) { return apply(CircuitOp::abs, a); }
  int neg(int a) { return sub(constant(0), a); }
  int root(int a, int degree) { return apply(CircuitOp::power, a, rational(1, degree)); }

  const CircuitNode& operator[](int node) const { return nodes_[node]; }
  int size() const { return static_cast<int>(nodes_.size()); }

 private:
  int intern(CircuitNode node);
  std::vector<CircuitNode> nodes_;
  std::unordered_multimap<uint64_t, int> index_;
};

}  // namespace ucas::math
