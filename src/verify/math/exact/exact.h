// Exact questions about numbers and functions: are two nodes of a circuit equal, which sign has a number.
// The work is done by FLINT, Arb and Calcium, which cannot be interrupted: every call is bounded beforehand from the
// sizes of its operands and counted against a budget. Steps of a decision, cheapest first:
//   1. balls (Arb, 64 bits) at sample points: a difference that excludes zero proves "different";
//   2. the difference modulo two 61-bit primes at random points (seeded by the caller, from the inputs): zero proves
//      "equal" for rational functions with error below 2^-60, also where functions of equal arguments occur in both;
//   3. algebraic numbers: the BFMSS separation bound gives the precision at which "contains zero" means "is zero";
//   4. numbers with pi, e, logarithms, trigonometric functions: Calcium's proof;
//   5. agreement to 100 bits beyond the smallest and largest intermediate value, at every sample point.
// Threads: an Exact belongs to one thread; any number of them may run at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "verify/math/read/expr.h"

namespace ucas::math {

// Expressions as straight-line programs over numbers and variables: what exact arithmetic works on. Equal
// subexpressions are one node, so sharing costs nothing and "the same expression" is "the same index". Nothing is
// evaluated here; src/verify/math/exact/exact.h does that within a counted budget.

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

// Steps that one comparison may take. The same inputs always spend the same.
struct Budget {
  int64_t steps = 1'000'000;
  bool spend(int64_t n) {
    steps -= n;
    return steps >= 0;
  }
};

struct Decision {
  enum Answer : uint8_t { different, equal, undecided } answer = undecided;
  const char* how = "";
  bool over_budget = false;  // undecided because the budget does not suffice
};

class Exact {
 public:
  Exact(const Circuit& circuit, uint64_t seed, Budget& budget);
  ~Exact();
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  Decision equal(int a, int b);
  // a = c b for a constant c other than 0 (equations that mean the same); with `positive`, c > 0.
  Decision proportional(int a, int b, bool positive);
  // -1, 0, 1 of a real number without variables; nullopt: not one, or undecided.
  std::optional<int> sign(int a);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

// From trees to circuits: the numeric meaning of a subtree, where it has one.

// A symbol of one answer that is renamed to a symbol of the other one.
struct Renaming {
  std::string from, to;
};

struct Lowering {
  Lowering(const Tree& t, Circuit& c) : tree(t), circuit(c) {}

  const Tree& tree;
  Circuit& circuit;
  uint32_t signs = 0;                              // bit k: the k-th \pm of the tree is a minus
  const std::vector<Renaming>* renamed = nullptr;  // of symbols
  int substituted = -1;                            // circuit node in place of the symbol `substitute`
  std::string_view substitute;

  // The circuit node of a subtree, -1 for one without a numeric value (a set, a text, infinity). Degrees count as plain
  // numbers except as arguments of trigonometric functions; units as their factor.
  int operator()(NodeId id);

 private:
  int number(const Node& node, std::string_view digits);
  int based(std::string_view digits, int base);
  int call(NodeId id);
  int determinant(NodeId id);
  int symbol(std::string_view name);
  int fold(CircuitOp op, NodeId id);
  int scaled(NodeId id, int numerator, int denominator);
  int power(NodeId id);
  int degree(NodeId id);
  int quantity(NodeId id);
  int operation(Function function, int x);
  int integer_function(Function function, const std::vector<int>& arguments);
  bool in_angle_ = false;
};

// How many \pm come before this node in the tree: its bit in `signs`.
int sign_bit(const Tree& tree, NodeId id);
// The bits of all \pm in a subtree.
uint32_t signs_below(const Tree& tree, NodeId id);
bool has_minus_plus(const Tree& tree, NodeId id);

// The names of all symbols of a subtree, each once, in order of appearance.
std::vector<std::string> symbols_of(const Tree& tree, NodeId id);

}  // namespace ucas::math
