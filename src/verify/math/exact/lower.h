// From trees to circuits: the numeric meaning of a subtree, where it has one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/math/exact/exact.h"
#include "verify/math/read/expr.h"

namespace ucas::math {

// A symbol of one answer that stands for a symbol of the other one.
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
