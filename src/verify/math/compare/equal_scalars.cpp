#include <algorithm>
#include <cstdlib>

#include "base/str.h"
#include "verify/math/compare/comparer.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/macros.h"

namespace ucas::math {

namespace {

// What surrounds a number at the top: 5\text{ cm}, 50\%, 90^\circ, -3.
struct Dressed {
  Part value;
  bool percent = false, degree = false, negative = false;
  Part unit;  // id kNoNode for none
};

Dressed undress(Part part) {
  Dressed d{part, false, false, false, {part.tree}};
  for (;;) {
    switch (d.value.kind()) {
      case Kind::percent:
        d.percent = true;
        break;
      case Kind::degree:
        d.degree = true;
        break;
      case Kind::negate:
        d.negative = !d.negative;
        break;
      case Kind::quantity:
        if (d.unit.id != kNoNode) return d;
        d.unit = d.value.child(1);
        break;
      default:
        return d;
    }
    d.value = d.value.child(0);
  }
}

// 72.0 is how a column of numbers writes 72.
bool is_decimal(const Dressed& d) {
  const Number& n = d.value.node().number;
  bool whole = n.places == 1 && n.exponent == 0 && d.value.text().ends_with('0');
  return d.value.kind() == Kind::number && n.places > 0 && n.repeat == 0 && !whole;
}

// The power of ten of the last digit shown.
int64_t last_place(const Dressed& d) {
  const Number& n = d.value.node().number;
  return int64_t{n.exponent} - std::max(n.places, 0);
}

int significant_digits(const Dressed& d) {
  int digits = 0;
  for (char c : d.value.text()) digits += (c >= '1' && c <= '9') || (c == '0' && digits > 0);
  return digits;
}

// The unit of the first part of "2 hours 30 minutes", where all parts have one of the same dimension; id kNoNode for
// anything else.
Part unit_of_sum(Part p) {
  Part none{p.tree};
  if (p.kind() != Kind::sum) return none;
  for (size_t k = 0; k < p.size(); ++k) {
    if (p.child(k).kind() != Kind::quantity) return none;
    if (p.child(k).child(1).text() != p.child(0).child(1).text()) return none;
  }
  return p.child(0).child(1);
}

// "m^2 red tile": what is measured, and the words for what is counted.
struct UnitWords {
  std::string measure;
  std::vector<std::string> words;
  std::string power;  // "^2" of square units
};

UnitWords words_of(std::string_view unit) {
  // Words that count anything; those of other scripts are not looked into.
  constexpr std::string_view kAny =
      "unit way time piece item thing number total people person object element member value solution possibility "
      "combination permutation arrangement outcome choice case method answer result left each more in all";
  UnitWords out;
  each_word(unit, [&](std::string_view part) {
    std::string_view name = part.substr(0, part.find('^'));
    if (name == "unit") out.power = part.substr(name.size());
    if (is_base_unit(name)) {
      out.measure += str(part, " ");
    } else if (!in_words(kAny, name) && std::none_of(name.begin(), name.end(), beyond_ascii)) {
      out.words.emplace_back(part);
    }
  });
  return out;
}

bool says_nothing(const UnitWords& unit) { return unit.measure.empty() && unit.words.empty(); }

// A unit may say less than the other one: 5 (units) for 5 cm, 5 tiles for 5 red tiles. What both say must agree: 5 cm
// are no 5 apples, and 5 boys no 5 girls.
bool same_unit(Part gold, Part answer) {
  if (gold.text() == answer.text()) return true;
  UnitWords g = words_of(gold.text()), a = words_of(answer.text());
  auto within = [](const std::vector<std::string>& few, const std::vector<std::string>& many) {
    return std::all_of(few.begin(), few.end(), [&](const std::string& word) { return among(many, word); });
  };
  if (!g.power.empty() && !a.power.empty() && g.power != a.power) return false;
  if (says_nothing(g) || says_nothing(a)) return true;
  return g.measure == a.measure && (within(g.words, a.words) || within(a.words, g.words));
}

bool is_radian(const Dressed& d) { return d.unit.id != kNoNode && d.unit.text() == kRadian; }

}  // namespace

// |g - a| < 10^exponent, or at most half of it.
bool Comparer::within(int g, int a, int64_t exponent, bool half) {
  if (exponent > 1000 || exponent < -1000) return false;
  int step = circuit_.constant("1", exponent);
  if (half) step = circuit_.div(step, circuit_.constant(2));
  int gap = circuit_.abs(circuit_.sub(g, a));
  int margin = circuit_.sub(step, gap);
  auto sign = Exact(circuit_, seed_, budget_).sign(margin);
  return sign && (half ? *sign >= 0 : *sign > 0);
}

// A decimal means what it was rounded from:
//   - a gold of three digits or more is met by any exact value (or decimal of three more places) that rounds, or is cut
//     off, to it;
//   - an exact gold that is no integer is met by a decimal that it rounds to: of five digits or more for a fraction, of
//     six for anything else.
Finding Comparer::decimals(Part gold, Part answer, int g, int a) {
  Dressed dg = undress(gold), da = undress(answer);
  constexpr Finding kDifferent{Outcome::different, "a different number"};
  if (circuit_[g].open || circuit_[a].open) return kDifferent;
  if (options_.precision >= 0 && (is_decimal(dg) || is_decimal(da)) && within(g, a, -options_.precision, true)) {
    return {Outcome::equal, "the same number to the decimals asked for"};
  }
  // in the units of the shown digits: percent shift by two places
  int64_t gold_place = last_place(dg) - (dg.percent ? 2 : 0), answer_place = last_place(da) - (da.percent ? 2 : 0);
  if (is_decimal(dg)) {
    if (significant_digits(dg) < 3) return kDifferent;
    bool answer_decimal = da.value.kind() == Kind::number;
    if (answer_decimal && answer_place > gold_place - 3) return kDifferent;
    if (within(g, a, gold_place, true)) return {Outcome::equal, "the gold answer is this value rounded"};
    if (answer_decimal || !within(g, a, gold_place, false)) return kDifferent;
    // cut off: the exact value is further from zero
    int beyond = circuit_.sub(circuit_.abs(a), circuit_.abs(g));
    auto sign = Exact(circuit_, seed_, budget_).sign(beyond);
    if (sign == 1) return {Outcome::equal, "the gold answer is this value cut off"};
    return kDifferent;
  }
  int digits = circuit_[g].rational ? 5 : 6;
  if (!is_decimal(da) || dg.value.kind() == Kind::number || significant_digits(da) < digits) return kDifferent;
  if (circuit_[g].denominator == 1) return kDifferent;
  if (within(g, a, answer_place, true)) return {Outcome::equal, "the exact gold answer, rounded"};
  return kDifferent;
}

Finding Comparer::values(Part gold, Part answer) {
  int g = lower(gold), a = lower(answer);
  if (g < 0 || a < 0) return {Outcome::undecided, g < 0 && a < 0 ? "" : "a different kind of answer"};
  Finding f = equal_nodes(g, a);
  if (f.outcome == Outcome::different) return decimals(gold, answer, g, a);
  return f;
}

// Only one of them is in degrees: the sign was left out, or the other one is in radians, with a \pi.
Finding Comparer::angles(Part gold, Part answer) {
  Finding plain = values(gold, answer);
  if (plain.outcome != Outcome::different) return plain;
  bool gold_degrees = undress(gold).degree;
  int degrees = lower(gold_degrees ? gold : answer), radians = lower(gold_degrees ? answer : gold);
  bool has_pi = false;
  for (int n = 0; n <= radians && !has_pi; ++n) has_pi = circuit_[n].op == CircuitOp::pi;
  if (!has_pi || circuit_[radians].rational) return plain;
  return in_radians(degrees, radians);
}

Finding Comparer::in_radians(int degrees, int radians) {
  if (degrees < 0 || radians < 0) return {Outcome::different, "another unit"};
  int unit = circuit_.div(circuit_.leaf(CircuitOp::pi), circuit_.constant(180));
  return equal_nodes(circuit_.mul(degrees, unit), radians);
}

// 2 hours 30 minutes are 150 minutes; without a unit on the other side nothing is known.
Finding Comparer::measured_sums(Part gold, Part answer, Part gold_unit, Part answer_unit) {
  if (gold_unit.id == kNoNode && gold.kind() == Kind::quantity) gold_unit = gold.child(1);
  if (answer_unit.id == kNoNode && answer.kind() == Kind::quantity) answer_unit = answer.child(1);
  bool both = gold_unit.id != kNoNode && answer_unit.id != kNoNode;
  if (both && gold_unit.text() != answer_unit.text()) return {Outcome::different, "another unit"};
  return values(gold, answer);
}

Finding Comparer::scalars(Part gold, Part answer) {
  if (gold.kind() == Kind::number && answer.kind() == Kind::number) return values(gold, answer);
  Part gold_sum = unit_of_sum(gold), answer_sum = unit_of_sum(answer);
  if (gold_sum.id != kNoNode || answer_sum.id != kNoNode) return measured_sums(gold, answer, gold_sum, answer_sum);
  Dressed g = undress(gold), a = undress(answer);
  bool gold_unit = g.unit.id != kNoNode, answer_unit = a.unit.id != kNoNode;
  if (gold_unit && answer_unit && !same_unit(g.unit, a.unit)) return {Outcome::different, "another unit"};
  if (is_radian(g) && a.degree) return in_radians(lower(answer), lower(gold));
  if (is_radian(a) && g.degree) return in_radians(lower(gold), lower(answer));
  if ((g.percent && a.degree) || (g.degree && a.percent)) return {Outcome::different, "another unit"};
  // 5 cm, 5 apples are neither 5 % nor 5 degrees
  auto measured = [](const Dressed& d) { return d.unit.id != kNoNode && !says_nothing(words_of(d.unit.text())); };
  auto bare_sign = [](const Dressed& d) { return d.unit.id == kNoNode && (d.percent || d.degree); };
  if ((measured(g) && bare_sign(a)) || (measured(a) && bare_sign(g))) return {Outcome::different, "another unit"};
  // 5 cm for 5 and 5 for 5 cm: the unit that only one of them has is left out
  if (gold_unit != answer_unit || (gold_unit && g.unit.text() != a.unit.text())) {
    Part plain_gold = gold, plain_answer = answer;
    auto without_unit = [](Part p) {
      while (p.kind() == Kind::quantity) p = p.child(0);
      return p;
    };
    if (gold.kind() == Kind::quantity) plain_gold = without_unit(gold);
    if (answer.kind() == Kind::quantity) plain_answer = without_unit(answer);
    if (plain_gold.id != gold.id || plain_answer.id != answer.id) return scalars(plain_gold, plain_answer);
  }
  if (g.degree != a.degree && !g.percent && !a.percent) return angles(gold, answer);
  if (g.percent == a.percent) return values(gold, answer);
  // 50 % counts for 50 and for 0.5, and either for 50 %; but 0.5 % is not 0.5
  Finding share = values(gold, answer);
  if (share.outcome != Outcome::different) return share;
  auto inside = [](Part p) {
    while (p.kind() == Kind::quantity) p = p.child(0);
    return p.kind() == Kind::percent ? p.child(0) : p;
  };
  Part gold_inside = inside(gold), answer_inside = inside(answer);
  if (gold_inside.id == gold.id && answer_inside.id == answer.id) return share;
  if (a.percent) {
    int node = lower(answer_inside);
    if (node < 0) return share;
    int size = circuit_.sub(circuit_.abs(node), circuit_.constant(1));
    auto sign = Exact(circuit_, seed_, budget_).sign(size);
    if (!sign || *sign < 0) return share;
  }
  return values(gold_inside, answer_inside);
}

}  // namespace ucas::math
