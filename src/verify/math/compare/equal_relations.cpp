#include <algorithm>
#include <utility>

#include "verify/math/compare/comparer.h"
#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

bool is_relation(Part p) { return p.kind() == Kind::relation && p.size() >= 2; }

bool only_equalities(Part p) {
  return std::all_of(p.text().begin(), p.text().end(), [](char c) { return c == '=' || c == '~'; });
}

// The letter of the mirrored relation; 0 where none is read: A \subset B, p \to q.
char mirrored(char c) {
  constexpr std::string_view kFrom = "<>lg", kTo = "><gl", kDirected = "ensadi";
  size_t which = kFrom.find(c);
  if (kDirected.find(c) != std::string_view::npos) return '\0';
  return which == std::string_view::npos ? c : kTo[which];
}

char relation_sign(Part p) { return is_relation(p) ? p.text()[0] : ' '; }

// x and x_1: one of the values of x. But x_1 is not x_2.
bool same_unknown(std::string_view x, std::string_view y) {
  if (x.size() > y.size()) std::swap(x, y);
  bool indexed = y.starts_with(x) && y.size() > x.size() + 1 && y[x.size()] == '_' && y[x.size() + 1] >= '0' &&
                 y[x.size() + 1] <= '9';
  return x == y || indexed;
}

bool is_function_of_names(Part p) {
  if (p.kind() == Kind::power) return is_function_of_names(p.child(0));
  if (p.kind() != Kind::call) return false;
  auto function = static_cast<Function>(p.node().tag);
  bool trigonometric = function >= Function::sin && function <= Function::cot;
  if (function == Function::abs) {  // |z|, |A|; but |x| = 3 is an equation
    Part inside = p.child(0);
    char letter = inside.kind() == Kind::symbol ? inside.text()[0] : 'x';
    return letter == 'z' || letter == 'w' || (letter >= 'A' && letter <= 'Z');
  }
  return trigonometric || function == Function::user || function == Function::gcd || function == Function::lcm;
}

// "area", "area of the triangle", "total cost".
bool names_quantity(std::string_view key) {
  constexpr std::string_view kNouns =
      "area volume perimeter circumference length width height distance speed cost price profit probability total "
      "sum average mean median value result answer solution number time angle slope radius ratio weight product "
      "remainder degree minimum maximum max min range domain";
  if (key.find("not") != std::string_view::npos || key.find("wrong") != std::string_view::npos) return false;
  bool named = false;
  each_word(kNouns, [&](std::string_view noun) { named |= key.starts_with(noun) || key.ends_with(noun); });
  return named;
}

// \frac{d}{dx} f, \frac{dy}{dx}.
bool has_derivative(Part p) {
  if (p.kind() == Kind::product) p = p.child(0);
  return p.kind() == Kind::symbol && p.text().find('/') != std::string_view::npos;
}

// A formula of several names, or of functions of names (\sin\theta, f(2) + f(3)): something that a question asks for.
// With a number in front and nothing behind its value it rather says what an unknown is.
bool asks_for_quantity(Part p, bool chain) {
  if (is_function_of_names(p)) return true;
  if (p.kind() == Kind::sum) {
    bool functions = true;
    for (size_t k = 0; k < p.size(); ++k) {
      Part term = p.child(k).kind() == Kind::negate ? p.child(k).child(0) : p.child(k);
      functions &= is_function_of_names(term);
    }
    if (functions) return true;
  }
  bool scaled =
      p.kind() == Kind::product && p.child(0).kind() != Kind::symbol && symbols_of(*p.tree, p.child(0).id).empty();
  return (chain || !scaled) && symbols_of(*p.tree, p.id).size() > 1;
}

}  // namespace

// What may be left of "=" as a mere name: x, f(x), A:B, AB, (x, y), \Delta p.
bool is_name(Part p) {
  switch (p.kind()) {
    case Kind::symbol:
      return p.text().find("not") == std::string_view::npos;  // "x_\\not = 8"
    case Kind::text:
    case Kind::choice:
      return true;
    case Kind::call:
      if (p.is(Function::abs)) {  // |AB|
        return p.child(0).kind() == Kind::product && is_name(p.child(0));
      }
      return p.is(Function::user);
    case Kind::ratio:
    case Kind::tuple:
    case Kind::list:
      for (size_t k = 0; k < p.size(); ++k) {
        if (!is_name(p.child(k))) return false;
      }
      return p.size() > 0;
    case Kind::product: {
      // AB, \Delta p; but xy = 6 is an equation
      for (size_t k = 0; k < p.size(); ++k) {
        if (p.child(k).kind() != Kind::symbol) return false;
      }
      std::string_view first = p.child(0).text();
      bool letters = true;
      for (size_t k = 0; k < p.size(); ++k) letters &= p.child(k).text()[0] >= 'A' && p.child(k).text()[0] <= 'Z';
      return letters || first == "Delta" || first == "delta" || first == "angle";
    }
    default:
      return false;
  }
}

// AB / BC, S_1 / S_2: a ratio of two quantities that have names, not of two variables.
bool is_ratio_of_names(Part p) {
  if (p.kind() != Kind::quotient) return false;
  for (Part side : {p.child(0), p.child(1)}) {
    bool indexed =
        side.kind() == Kind::symbol && is_upper(side.text()[0]) && side.text().find('_') != std::string_view::npos;
    if (!indexed && !(side.kind() == Kind::product && is_name(side))) return false;
  }
  return true;
}

// 17/4 \approx 4.2: within 1 %, and the exact one is no integer.
bool Comparer::roughly_equal(Part exact, Part rounded) {
  int x = lower(exact), y = lower(rounded);
  if (x < 0 || y < 0 || circuit_[x].denominator == 1) return false;
  int size = circuit_.abs(circuit_.mul(x, circuit_.rational(1, 100)));
  int gap = circuit_.abs(circuit_.sub(x, y));
  return Exact(circuit_, seed_, budget_).sign(circuit_.sub(size, gap)).value_or(-1) >= 0;
}

// "x = 5" is 5 with the name x; "x = 2 + 3 = 5" and "1/3 \approx 0.33" as well. An equation keeps its form.
Named Comparer::strip_name(Part part) {
  if (!is_relation(part) || !only_equalities(part)) return {"", part};
  std::string_view gaps = part.text();
  size_t last = part.size() - 1;  // index of the value
  size_t about = gaps.find('~');
  bool named = is_name(part.child(0));
  // "Maximum = 2, Minimum = 1" has words for names; alone "wrong = 8" may say anything, but "area = 8" does not
  if (part.child(0).kind() == Kind::text && part.id == part.tree->root()) named = names_quantity(part.child(0).text());
  if (about != std::string_view::npos && about > 0) last = about;
  if (about == 0 && !named) last = 0;
  // An exact value next to its decimals; not two values next to each other.
  if (about != std::string_view::npos && last == about && !roughly_equal(part.child(about), part.child(about + 1))) {
    return {"", part};
  }
  if (last == 0) return {"", part.child(0)};
  // x = 16/2 = 8: what is between says the same, or is a formula of other letters
  for (size_t k = 1; named && k < last; ++k) {
    int side = lower(part.child(k)), value = lower(part.child(last));
    auto letters = symbols_of(*part.tree, part.child(k).id);
    bool of_itself = part.child(0).kind() == Kind::symbol && among(letters, part.child(0).text());
    bool other = side >= 0 && value >= 0 && !circuit_[side].open && !circuit_[value].open &&
                 !equal_nodes(side, value).equal() && !roughly_equal(part.child(k), part.child(last));
    if (of_itself || (other && gold().kind() != Kind::relation)) return {"", part};
  }
  if (named) return {show(part.child(0)), part.child(last), part.child(0)};
  if (last == 1 && is_name(part.child(1)) && part.child(1).kind() == Kind::symbol &&
      signs_below(*part.tree, part.id) == 0 && symbols_of(*part.tree, part.child(0).id).empty()) {
    return {show(part.child(1)), part.child(0), part.child(1)};  // 5 = x
  }
  // 1 + 1 = 2: all sides are numbers, and the same one
  int value = lower(part.child(last));
  if (value < 0 || circuit_[value].open) return {"", part};
  for (size_t k = 0; k < last; ++k) {
    int side = lower(part.child(k));
    if (side < 0 || !equal_nodes(side, value).equal()) return {"", part};
  }
  return {"", part.child(last)};
}

// "A^{-1} = (matrix)", "A + B = (sum) = (matrix)".
std::optional<Part> Comparer::restated_matrix(Part chain) {
  Part last = chain.child(chain.size() - 1);
  for (size_t k = 0; k + 1 < chain.size(); ++k) {
    Part side = chain.child(k);
    bool power = side.kind() == Kind::power && side.child(0).kind() == Kind::symbol;
    bool same = is_matrix_arithmetic(side) && matrices(side, last).equal();
    if (!same && !power && !asks_for_quantity(side, false)) return std::nullopt;
  }
  return last;
}

// "a + b + c = 12", "\sin\theta = 3/5", "(x+2)^2 = x^2 + 4x + 4": what was asked for, and its value, which is the last
// side. An equation that says something about its only unknown, such as 2x = 7, is no such thing.
std::optional<Part> Comparer::restated(Part chain) {
  if (!is_relation(chain) || chain.text().find_first_not_of('=') != std::string_view::npos) return std::nullopt;
  Part last = chain.child(chain.size() - 1);
  if (is_matrix_arithmetic(last)) return restated_matrix(chain);
  int value = lower(last);
  if (value < 0) return std::nullopt;
  for (size_t k = 0; k + 1 < chain.size(); ++k) {
    Part side = chain.child(k);
    if (has_derivative(side)) continue;
    int node = lower(side);
    bool same = node >= 0 && !circuit_[node].opaque && equal_nodes(node, value).equal();
    bool of_functions = node >= 0 && circuit_[node].opaque && !circuit_[node].open;  // f(5) - f(2)
    bool formula = asks_for_quantity(side, chain.size() > 2) && (node < 0 || circuit_[node].open);
    bool quantity = !circuit_[value].open && (of_functions || formula);
    if (quantity && circuit_[value].denominator == 1 && circuit_[value].numerator == 0) quantity = false;
    if (!same && !quantity) return std::nullopt;
  }
  return last;
}

// `value` without `symbol` solves the equation for it, and nothing else does: the equation is linear in the symbol.
Finding Comparer::solved(Part equation, std::string_view symbol, Part value) {
  int answer = lower(value);
  if (answer < 0) return {Outcome::different, "a different kind of answer"};
  auto residual = [&](int substitute) {
    Lowering left(*equation.tree, circuit_);
    left.signs = equation.signs;
    left.substitute = symbol;
    left.substituted = substitute;
    if (equation.tree == &answer_) left.renamed = &renamed_;
    int l = left(equation.child(0).id), r = left(equation.child(1).id);
    return l < 0 || r < 0 ? -1 : circuit_.sub(l, r);
  };
  int at = residual(answer), zero = residual(circuit_.constant(0)), one = residual(circuit_.constant(1)),
      five = residual(circuit_.constant(5));
  if (at < 0 || zero < 0 || one < 0 || five < 0) return {Outcome::different, "a different kind of answer"};
  // linear: F(5) - F(0) = 5 (F(1) - F(0)), and F(1) is not F(0)
  int slope = circuit_.sub(one, zero);
  int wide = circuit_.sub(five, zero);
  int expected = circuit_.mul(circuit_.constant(5), slope);
  if (equal_nodes(slope, circuit_.constant(0)).outcome != Outcome::different)
    return {Outcome::different, "a different equation"};
  if (!equal_nodes(wide, expected).equal()) return {Outcome::different, "a different equation"};
  if (equal_nodes(at, circuit_.constant(0)).equal()) return {Outcome::equal, "the equation, solved"};
  return {Outcome::different, "not a solution of the equation"};
}

// Both are chains of relations that are more than a name and a value.
Finding Comparer::equations(Part gold, Part answer, int depth) {
  std::string gaps_g(gold.text()), gaps_a(answer.text());
  auto mirror = [](std::string gaps) {
    std::reverse(gaps.begin(), gaps.end());
    for (char& c : gaps) c = mirrored(c);
    return gaps;
  };
  size_t n = gaps_g.size();
  if (n != gaps_a.size()) return {Outcome::different, "a different relation"};
  for (bool turned : {false, true}) {
    if ((turned ? mirror(gaps_a) : gaps_a) != gaps_g) continue;
    bool all = true;
    for (size_t k = 0; k <= n && all; ++k)
      all = compare(gold.child(k), answer.child(turned ? n - k : k), depth + 1).equal();
    if (all) return {Outcome::equal, "the same relation"};
  }
  if (n != 1 || (gaps_g[0] != '=' && !is_order(gaps_g[0]))) return {Outcome::different, "a different relation"};
  // l - r of one is c times l - r of the other
  int gl = lower(gold.child(0)), gr = lower(gold.child(1)), al = lower(answer.child(0)), ar = lower(answer.child(1));
  if (gl < 0 || gr < 0 || al < 0 || ar < 0) return {Outcome::different, "a different relation"};
  int g = circuit_.sub(gl, gr), a = circuit_.sub(al, ar);
  if (!circuit_[g].open || !circuit_[a].open) return {Outcome::different, "a different relation"};
  if (is_order(gaps_g[0])) {
    bool greater_g = gaps_g[0] == '>' || gaps_g[0] == 'g', greater_a = gaps_a[0] == '>' || gaps_a[0] == 'g';
    if (greater_g != greater_a) {
      a = circuit_.neg(a);
      gaps_a[0] = mirrored(gaps_a[0]);
    }
  }
  if (gaps_g[0] != gaps_a[0]) return {Outcome::different, "a different relation"};
  Decision decision = Exact(circuit_, seed_, budget_).proportional(g, a, is_order(gaps_g[0]));
  Finding f = finding(decision);
  if (f.outcome == Outcome::equal) f.reason = "the same equation up to a factor";
  return f.outcome == Outcome::undecided ? Finding{Outcome::different, "a different equation"} : f;
}

Finding Comparer::compare_renamed(Part gold, Part answer, const std::vector<std::string>& from,
                                  const std::vector<std::string>& to, int depth) {
  auto saved = renamed_;
  for (size_t k = 0; k < from.size(); ++k) renamed_.push_back({from[k], to[k]});
  Finding f = compare(gold, answer, depth + 1);
  renamed_ = std::move(saved);
  return f;
}

// x > 2 against y > 2.
bool Comparer::other_unknown(Part gold, Part answer) const {
  if (!is_real_set(gold) || !is_real_set(answer)) return false;
  std::string g = unknown_of(gold), a = unknown_of(answer);
  auto is_value = [](const std::string& name) { return name.starts_with('('); };  // of a function: y, g(t) as well
  if ((is_value(g) && (is_value(a) || a == "y")) || (is_value(a) && g == "y")) return false;
  return !g.empty() && !a.empty() && !same_unknown(g, a);
}

// A formula next to its name in other letters (BA for AB), for names of segments.
std::string Comparer::segment_of(Part name) {
  std::string letters;
  if (name.kind() != Kind::product || !is_name(name)) return letters;
  for (size_t k = 0; k < name.size(); ++k) letters += name.child(k).text();
  std::sort(letters.begin(), letters.end());
  return letters;
}

// Names that cannot be of the same thing: x and y, AB and BC, Alice and Bob; but not area and total area.
bool Comparer::other_name(Part gold, Part answer) {
  if (gold.kind() != answer.kind()) return false;
  switch (gold.kind()) {
    case Kind::symbol:
      return !same_unknown(show(gold), show(answer)) && renamed_.empty();
    case Kind::product:
      return segment_of(gold) != segment_of(answer);
    case Kind::call:  // f(2) and f(3), f(x) and g(x); but f(x) and f(t), and no \lim or \int, which is written in many
                      // ways
      if (!gold.is(Function::user) || !answer.is(Function::user) || gold.text().starts_with('\\')) return false;
      if (gold.text() != answer.text()) return true;
      return show(gold) != show(answer) && (bound_symbols(gold).empty() || bound_symbols(answer).empty());
    case Kind::text: {
      std::string_view g = gold.text(), a = answer.text();
      bool contained = g.find(a) != std::string_view::npos || a.find(g) != std::string_view::npos;
      return !contained && !names_quantity(g) && !names_quantity(a);
    }
    default:
      return false;
  }
}

// The one unknown of an equation that a term does not name: y of y = 2x and 3x; "" if there is no such one.
static std::string unknown_beside(Part equation, Part term) {
  const auto unknown = symbols_of(*equation.tree, equation.id), free = symbols_of(*term.tree, term.id);
  std::string symbol;
  int missing = 0;
  for (const std::string& name : unknown) {
    if (std::find(free.begin(), free.end(), name) != free.end()) continue;
    symbol = name;
    ++missing;
  }
  const bool constant = symbol.starts_with('C') || symbol.starts_with("c_");  // C of an integral is no unknown
  return missing == 1 && !free.empty() && !constant ? symbol : "";
}

// nullopt: neither is a relation, or what they are is a set of reals: other rules decide.
std::optional<Finding> Comparer::relations(Part gold, Part answer, int depth) {
  if (!is_relation(gold) && !is_relation(answer)) return std::nullopt;
  Named g = strip_name(gold), a = strip_name(answer);
  bool gold_value = g.value.id != gold.id, answer_value = a.value.id != answer.id;
  // f(x) = ..., f(y) = ...: the bound variables are renamed
  if (gold_value && answer_value) {
    auto x = bound_symbols(gold.child(0)), y = bound_symbols(answer.child(0));
    if (!x.empty() && x.size() == y.size() && x != y) {
      auto free = symbols_of(*a.value.tree, a.value.id);  // f(w) = x^2 is a constant
      bool taken = std::any_of(free.begin(), free.end(), [&](const std::string& name) {
        return std::find(x.begin(), x.end(), name) != x.end() && std::find(y.begin(), y.end(), name) == y.end();
      });
      if (taken) return Finding{Outcome::different, "a function of another variable"};
      if (!other_name(g.of, a.of)) return compare_renamed(g.value, a.value, y, x, depth);
    }
    bool other = g.of.id != kNoNode && a.of.id != kNoNode && other_name(g.of, a.of);
    if (other) return Finding{Outcome::different, "a value of another variable"};
    return compare(g.value, a.value, depth + 1);
  }
  if (gold_value && !is_relation(a.value)) {
    auto x = bound_symbols(gold.child(0)), free = symbols_of(*a.value.tree, a.value.id);
    bool letter = free.size() == 1 && free[0] != "...";
    if (x.size() == 1 && letter && free != x && symbols_of(*g.value.tree, g.value.id).size() == 1) {
      return compare_renamed(g.value, a.value, free, x, depth);
    }
    return compare(g.value, a.value, depth + 1);
  }
  if (answer_value && !is_relation(g.value)) return compare(g.value, a.value, depth + 1);
  if (!is_relation(answer) && gold.size() == 2 && gold.text() == "=" && is_ratio_of_names(gold.child(0))) {
    int value = lower(gold.child(1));
    if (value >= 0 && !circuit_[value].open) return compare(gold.child(1), answer, depth + 1);
  }
  if (!is_relation(gold)) {
    if (auto value = restated(answer)) return compare(gold, *value, depth + 1);
  }
  if (!options_.relation_for_set && is_order(relation_sign(answer)) && !is_order(relation_sign(gold))) {
    return Finding{Outcome::different, "a relation for a set"};
  }
  if (other_unknown(gold, answer)) return Finding{Outcome::different, "a value of another variable"};
  if (is_real_set(gold) || is_real_set(answer)) {
    auto p = pieces(gold), q = pieces(answer);
    if (p && q) {
      Finding f = real_sets(*p, *q);
      if (f.equal() || !is_relation(gold) || !is_relation(answer)) return f;
    }
  }
  if (is_relation(gold) && is_relation(answer)) return equations(gold, answer, depth);
  // y + 1 = -(2x - 1)^2 against -4x^2 + 4x - 2
  if (is_relation(gold) && gold.text() == "=" && !is_list(answer)) {
    const std::string symbol = unknown_beside(gold, answer);
    if (!symbol.empty()) return solved(gold, symbol, answer);
  }
  if (is_list(gold) || is_list(answer)) return std::nullopt;
  return Finding{Outcome::different, "a relation and a value"};
}

}  // namespace ucas::math
