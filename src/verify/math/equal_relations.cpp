#include <algorithm>

#include "verify/math/comparer.h"

namespace ucas::math {

namespace {

bool is_relation(Part p) { return p.kind() == Kind::relation && p.size() >= 2; }

bool only_equalities(Part p) {
  return std::all_of(p.text().begin(), p.text().end(), [](char c) { return c == '=' || c == '~'; });
}

// The letter of the mirrored relation.
char mirrored(char c) {
  switch (c) {
    case '<':
      return '>';
    case '>':
      return '<';
    case 'l':
      return 'g';
    case 'g':
      return 'l';
    default:
      return c;
  }
}

bool is_order(char c) { return c == '<' || c == '>' || c == 'l' || c == 'g'; }

char relation_sign(Part p) { return is_relation(p) ? p.text()[0] : ' '; }

// f(x) with a lone symbol as argument: the symbol.
std::string_view bound_symbol(Part p) {
  if (p.kind() != Kind::call || p.node().tag != static_cast<uint8_t>(Function::user) || p.size() != 1) return {};
  return p.child(0).kind() == Kind::symbol ? p.child(0).text() : std::string_view{};
}

}  // namespace

// What may stand left of "=" as a mere name: x, f(x), A:B, AB, (x, y), \Delta p.
bool is_name(Part p) {
  switch (p.kind()) {
    case Kind::symbol:
      return p.text().find("not") == std::string_view::npos;  // "x_\\not = 8"
    case Kind::text:
    case Kind::choice:
      return true;
    case Kind::call:
      if (p.node().tag == static_cast<uint8_t>(Function::abs)) {  // |AB|
        return p.child(0).kind() == Kind::product && is_name(p.child(0));
      }
      return p.node().tag == static_cast<uint8_t>(Function::user);
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

// 17/4 \approx 4.2: within 1 %, and the exact one is no integer.
bool Comparer::roughly_equal(Part exact, Part rounded) {
  int x = lower(exact), y = lower(rounded);
  if (x < 0 || y < 0 || circuit_[x].denominator == 1) return false;
  int size = circuit_.apply(CircuitOp::abs, circuit_.apply(CircuitOp::mul, x, circuit_.rational(1, 100)));
  int gap = circuit_.apply(CircuitOp::abs, circuit_.apply(CircuitOp::sub, x, y));
  return Exact(circuit_, seed_, budget_).sign(circuit_.apply(CircuitOp::sub, size, gap)) == 1;
}

// "x = 5" is 5 with the name x; "x = 2 + 3 = 5" and "1/3 \approx 0.33" as well. An equation keeps its form.
Named Comparer::strip_name(Part part) {
  if (!is_relation(part) || !only_equalities(part)) return {"", part};
  std::string_view gaps = part.text();
  size_t last = part.size() - 1;  // index of the value
  size_t about = gaps.find('~');
  bool named = is_name(part.child(0));
  // "Maximum = 2, Minimum = 1" has words for names; "wrong = 8" alone may say anything
  if (part.child(0).kind() == Kind::text && part.id == part.tree->root()) named = false;
  if (about != std::string_view::npos && about > 0) last = about;
  if (about == 0 && !named) last = 0;
  // An exact value beside its decimals; not two values beside each other.
  if (about != std::string_view::npos && last == about && !roughly_equal(part.child(about), part.child(about + 1))) {
    return {"", part};
  }
  if (last == 0) return {"", part.child(0)};
  if (named) return {show(part.child(0)), part.child(last)};
  if (last == 1 && is_name(part.child(1)) && part.child(1).kind() == Kind::symbol &&
      signs_below(*part.tree, part.id) == 0 && symbols_of(*part.tree, part.child(0).id).empty()) {
    return {show(part.child(1)), part.child(0)};  // 5 = x
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
    return l < 0 || r < 0 ? -1 : circuit_.apply(CircuitOp::sub, l, r);
  };
  int at = residual(answer), zero = residual(circuit_.constant(0)), one = residual(circuit_.constant(1)),
      five = residual(circuit_.constant(5));
  if (at < 0 || zero < 0 || one < 0 || five < 0) return {Outcome::different, "a different kind of answer"};
  // linear: F(5) - F(0) = 5 (F(1) - F(0)), and F(1) is not F(0)
  int slope = circuit_.apply(CircuitOp::sub, one, zero);
  int wide = circuit_.apply(CircuitOp::sub, five, zero);
  int expected = circuit_.apply(CircuitOp::mul, circuit_.constant(5), slope);
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
  int g = circuit_.apply(CircuitOp::sub, gl, gr), a = circuit_.apply(CircuitOp::sub, al, ar);
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

// nullopt: neither is a relation, or what they are is a set of reals: other rules decide.
std::optional<Finding> Comparer::relations(Part gold, Part answer, int depth) {
  if (!is_relation(gold) && !is_relation(answer)) return std::nullopt;
  Named g = strip_name(gold), a = strip_name(answer);
  bool gold_value = g.value.id != gold.id, answer_value = a.value.id != answer.id;
  // f(x) = ..., f(y) = ...: the bound variable is renamed
  if (gold_value && answer_value) {
    std::string_view x = bound_symbol(gold.child(0)), y = bound_symbol(answer.child(0));
    if (!x.empty() && !y.empty() && x != y) {
      auto saved = renamed_;
      renamed_.assign(1, {std::string(y), std::string(x)});
      Finding f = compare(g.value, a.value, depth + 1);
      renamed_ = std::move(saved);
      return f;
    }
    auto kind = [&](Part p) { return p.child(0).kind(); };
    bool both_symbols = kind(gold) == Kind::symbol && kind(answer) == Kind::symbol;
    if (both_symbols && g.name != a.name && renamed_.empty()) {
      return Finding{Outcome::different, "a value of another variable"};
    }
    return compare(g.value, a.value, depth + 1);
  }
  if (gold_value && !is_relation(a.value)) {
    std::string_view x = bound_symbol(gold.child(0));
    auto free = symbols_of(*a.value.tree, a.value.id);
    if (!x.empty() && free.size() == 1 && free[0] != x && symbols_of(*g.value.tree, g.value.id).size() == 1) {
      auto saved = renamed_;
      renamed_.assign(1, {free[0], std::string(x)});
      Finding f = compare(g.value, a.value, depth + 1);
      renamed_ = std::move(saved);
      return f;
    }
    return compare(g.value, a.value, depth + 1);
  }
  if (answer_value && !is_relation(g.value)) return compare(g.value, a.value, depth + 1);
  if (!rules_.relation_for_set && is_order(relation_sign(answer)) && !is_order(relation_sign(gold))) {
    return Finding{Outcome::different, "a relation for a set"};
  }
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
    auto unknown = symbols_of(*gold.tree, gold.id), free = symbols_of(*answer.tree, answer.id);
    std::string_view symbol;
    int missing = 0;
    for (const std::string& name : unknown) {
      if (std::find(free.begin(), free.end(), name) != free.end()) continue;
      symbol = name;
      ++missing;
    }
    if (missing == 1 && !free.empty()) return solved(gold, symbol, answer);
  }
  if (is_list(gold) || is_list(answer)) return std::nullopt;
  return Finding{Outcome::different, "a relation and a value"};
}

}  // namespace ucas::math
