// What an answer says, as a tree: the contract between the parser (verify/math/read/parser.h), which builds it, and
// equality, which reads it. Nodes live in one arena per answer and name each other by index; children come before their
// parent, so a pass over the nodes in order is a pass from the leaves up, without recursion. Nothing is evaluated or
// rounded: numbers stay text. Plain data; one thread at a time may change a tree, any number may read it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ucas::math {

using NodeId = uint32_t;
constexpr NodeId kNoNode = ~NodeId{0};

// Counted limits; an answer beyond one of them is over budget, never slow.
constexpr size_t kCharacterLimit = size_t{8} << 10;
constexpr size_t kNodeLimit = 20'000;
constexpr int kDepthLimit = 200;  // of nesting, children of a sum or list not counted

// Each kind with what its fields hold; "a" and "b" are child nodes, [..] any number of them.
enum class Kind : uint8_t {
  error,          // no answer; text: the reason
  number,         // 12, 3.50, 1.2 \times 10^{3}, 0.1\overline{6}. text: digits with at most one '.'; see Number below
  based,          // 1011_2, \text{AF}_{16}. text: digits 0-9 a-z and at most one '.'; value: the base
  symbol,         // x, x_1, \theta, ABC, \frac{dy}{dx}. text: "x", "x_1", "theta"; a subscript is part of the name
  constant,       // \pi, e, i, \infty, \emptyset, \mathbb{R}. tag: Constant
  sum,            // [a..], differences are sums with a negation: x - 1 = sum(x, negate(1)); mixed numbers 2\frac12, too
  product,        // [a..]. "AB" of two capitals is one product(A, B), as the names of segments are
  quotient,       // a / b
  power,          // a ^ b
  negate,         // -a
  plus_minus,     // \pm a; 1 \pm a is sum(1, plus_minus(a)). tag: 1 for \mp
  call,           // tag: Function; children: its arguments; text: the name where tag is Function::user, "f", "f'"
  percent,        // a\%
  degree,         // a^\circ, a degrees (of an angle; temperatures are quantities)
  quantity,       // a with a unit: 5\text{ cm}, \$3.50, 7 apples. children: a, unit
  unit,           // text: base dimension ("m^2", "dollar", "apple"); child: exact factor to that base; tag: UnitKind
  text,           // words or a formula beyond the grammar. text: one normal form, equal forms are equal answers
  choice,         // (B), \textbf{(B)}. text: "B"
  tuple,          // (a, b), \langle a, b \rangle, one column or row of numbers in a matrix stays a matrix. tag: Bracket
  interval,       // [a, b), (-\infty, 3]. children: two ends; tag: kLeftClosed | kRightClosed. An open interval of
                  // finite ends is written like a pair and comes as tuple(round, 2); [a, b] comes as an interval
  set,            // \{1, 2\}; none: \{\}. children: the elements as written, with repetitions
  set_builder,    // \{ x \mid x > 0 \}. children: the element, the condition
  set_operation,  // a \cup b. tag: SetOperation
  matrix,         // row by row; value: the number of rows; tag: Bracket (bar: a determinant)
  relation,       // x = 5, 1 < x \le 2, x \in A: a chain. text: one Relation per gap, children: one more
  list,           // 1, 2 and 3; x = 1, y = 2 is a list of relations; x = 1, 2 is relation(x, list). tag: Connective;
                  // value: 1 of \land and \lor
  ratio,          // 3 : 4, 12:30 PM. children: the parts; text: "am", "pm" or ""; value: 1 of a time
};

// A number is digits(text) * 10^exponent. With `repeat` > 0 its last so many decimals go on for ever.
struct Number {
  int32_t exponent = 0;  // of ten, written out: 1.2e3, 1.2 \times 10^{3}
  int32_t places = -1;   // decimals shown, -1 without a decimal point; the precision is 10^(exponent - places)
  int32_t repeat = 0;
};

enum class Constant : uint8_t {
  pi,
  e,
  i,
  infinity,  // -\infty is its negation
  empty_set,
  naturals,
  integers,
  rationals,
  reals,
  complexes,
  undefined,  // "undefined", "does not exist", DNE
  no_answer,  // "no solution", "none"
};

// clang-format off
// Each function with its printed name. log: a (base not written), or base, a; root: index, radicand; binomial: n, k;
// gcd, lcm, max, min: [a..]; mod: a mod b, and x \equiv 3 \pmod 5 is relation "c" of x and mod(3, 5); user: f(x) with f
// among f g h F G P Q ..., \phi(x), whose text is the name.
#define UCAS_FUNCTIONS(X)                                                                                             \
  X(sqrt, "sqrt") X(root, "root")                                                                                     \
  X(sin, "sin") X(cos, "cos") X(tan, "tan") X(sec, "sec") X(csc, "csc") X(cot, "cot")                                 \
  X(arcsin, "arcsin") X(arccos, "arccos") X(arctan, "arctan")                                                         \
  X(arcsec, "arcsec") X(arccsc, "arccsc") X(arccot, "arccot")                                                         \
  X(sinh, "sinh") X(cosh, "cosh") X(tanh, "tanh") X(coth, "coth") X(sech, "sech") X(csch, "csch")               \
  X(arsinh, "arsinh") X(arcosh, "arcosh") X(artanh, "artanh") X(arcoth, "arcoth")                                     \
  X(arsech, "arsech") X(arcsch, "arcsch")                                                                             \
  X(log, "log") X(lg, "lg") X(ln, "ln") X(exp, "exp")                                                                  \
  X(abs, "abs") X(norm, "norm") X(floor, "floor") X(ceil, "ceil")                                                     \
  X(factorial, "factorial") X(double_factorial, "double-factorial") X(binomial, "binomial")                           \
  X(gcd, "gcd") X(lcm, "lcm") X(max, "max") X(min, "min") X(mod, "mod")                                               \
  X(conjugate, "conjugate") X(real_part, "real-part") X(imaginary_part, "imaginary-part")                             \
  X(sign, "sign") X(arg, "arg") X(user, "user")
#define UCAS_ENUMERATOR(name, printed) name,
enum class Function : uint8_t { UCAS_FUNCTIONS(UCAS_ENUMERATOR) };
#undef UCAS_ENUMERATOR
// clang-format on

enum class Bracket : uint8_t { round, square, curly, angle, bar, none };
enum class SetOperation : uint8_t { unite, intersect, subtract };
enum class Connective : uint8_t { comma, semicolon, conj_and, conj_or };
enum class UnitKind : uint8_t { known, word };  // word: not in the table, factor 1 (apples, ways)

constexpr uint8_t kLeftClosed = 1, kRightClosed = 2;

// The letters in the text of a relation.
namespace relation {
constexpr char kEqual = '=', kNotEqual = '!', kLess = '<', kLessEqual = 'l', kGreater = '>', kGreaterEqual = 'g',
               kApproximately = '~', kIn = 'e', kNotIn = 'n', kSubset = 's', kCongruent = 'c', kSimilar = 'm',
               kSameShape = 'k', kDivides = 'd', kArrow = 'a', kPerpendicular = 'p', kParallel = 'q', kImplies = 'i',
               kEquivalent = 'b', kTwoWay = 'r';
}

struct Node {
  Kind kind = Kind::error;
  uint8_t tag = 0;
  int32_t value = 0;
  uint32_t text = 0, text_size = 0;     // in Tree::characters
  uint32_t first = 0, child_count = 0;  // in Tree::links
  Number number;

  bool is(Constant c) const { return kind == Kind::constant && tag == static_cast<uint8_t>(c); }
  bool is(Function f) const { return kind == Kind::call && tag == static_cast<uint8_t>(f); }
  bool has(Connective c) const { return kind == Kind::list && tag == static_cast<uint8_t>(c); }
  bool has(Bracket b) const { return tag == static_cast<uint8_t>(b); }
};

class Tree {
 public:
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }
  NodeId root() const { return root_; }
  void set_root(NodeId id) { root_ = id; }

  std::span<const NodeId> children(NodeId id) const {
    return std::span(links_).subspan(nodes_[id].first, nodes_[id].child_count);
  }
  NodeId child(NodeId id, size_t i) const { return links_[nodes_[id].first + i]; }
  std::string_view text(NodeId id) const {
    return std::string_view(characters_).substr(nodes_[id].text, nodes_[id].text_size);
  }

  // The children must be in the tree; `text` must not point into it.
  NodeId add(Kind kind, uint8_t tag, std::string_view text, std::span<const NodeId> children, int32_t value = 0);
  NodeId add(Kind kind, std::initializer_list<NodeId> children = {}, uint8_t tag = 0) {
    return add(kind, tag, {}, {children.begin(), children.size()});
  }
  template <class Tag>
  NodeId add(Kind kind, Tag tag, std::initializer_list<NodeId> children = {}) {
    return add(kind, static_cast<uint8_t>(tag), {}, {children.begin(), children.size()});
  }
  NodeId add_text(Kind kind, std::string_view text, int32_t value = 0) { return add(kind, 0, text, {}, value); }
  NodeId add_number(std::string_view digits, Number number = {});
  void clear();  // keeps the memory

 private:
  NodeId root_ = kNoNode;
  std::vector<Node> nodes_;
  std::vector<NodeId> links_;
  std::string characters_;
};

const char* name_of(Kind kind);
const char* name_of(Constant constant);
const char* name_of(Function function);

// One line that shows every field: (sum (symbol x) (negate (number 1))) is printed "(+ x (- 1))". For tests, --explain
// and people; equal trees print alike and different ones differently.
std::string to_string(const Tree& tree, NodeId id);
inline std::string to_string(const Tree& tree) { return to_string(tree, tree.root()); }

}  // namespace ucas::math
