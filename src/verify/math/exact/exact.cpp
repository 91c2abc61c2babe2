#include "verify/math/exact/exact.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "verify/math/exact/balls.h"

namespace ucas::math {

// The ball of each node of a circuit.
class Balls {
 public:
  explicit Balls(int count) : values_(count) {
    for (acb_struct& v : values_) acb_init(&v);
  }
  ~Balls() {
    for (acb_struct& v : values_) acb_clear(&v);
  }
  Balls(const Balls&) = delete;
  Balls& operator=(const Balls&) = delete;
  acb_struct* operator[](int i) { return &values_[i]; }

 private:
  std::vector<acb_struct> values_;
};

namespace {

constexpr slong kPrecisionLimit = 20'000;  // bits of a ball
constexpr int kAlike = 4;                  // sample points at which all variables are positive, of like size
constexpr size_t kSigned = 8;              // variables that have signs of their own
constexpr int kPoints = kAlike + 2 * kSigned;

// FLINT and Arb keep constants per thread; they go with the thread.
struct ThreadCaches {
  ~ThreadCaches() { flint_cleanup(); }
};

// 2^-n and 2^n enclose the value; a part that may be zero has no size.
slong exponent_of(const acb_t z) {
  auto part = [](const arb_t x) {
    return arb_contains_zero(x) ? slong{0} : std::abs(arf_abs_bound_lt_2exp_si(arb_midref(x)));
  };
  return std::max(part(acb_realref(z)), part(acb_imagref(z)));
}

// The value of a variable at a sample point. At the first points all variables are positive and of like size, so that
// roots and logarithms are real. Behind them come pairs of points, a variable each: it alone is negative, it alone is
// positive; the sizes go in turn, from below one to beyond the constants of the expression (`reach`).
void set_sample(acb_t z, uint64_t random, size_t variable, int point, double reach) {
  constexpr double kSizes[kAlike][2] = {{0.2, 0.9}, {1.05, 3}, {3, 12}, {20, 70}};
  size_t pair = static_cast<size_t>(std::max(point - kAlike, 0)) / 2;
  bool alike = point < kAlike, far = !alike && (pair + variable) % 3 == 2;
  const double* size = kSizes[alike ? static_cast<size_t>(point) : 2 * ((pair + variable) % 3 % 2)];
  double from = far ? 1.5 * reach : size[0], to = far ? 3 * reach : size[1];
  double share = static_cast<double>(random >> 32) * 0x1p-32;
  bool negative = !alike && (pair == variable % kSigned) != (point % 2 == 1);
  // a short dyadic number: exact, and cheap to compute with
  double x = std::ldexp(std::round(std::ldexp(from + (to - from) * share, 16)), -16);
  acb_set_d(z, negative ? -x : x);
}

}  // namespace

struct Exact::Work {
  const Circuit& circuit;
  uint64_t seed;
  Budget& budget;
  Balls values;
  std::vector<char> needed, beyond;
  std::vector<uint64_t> variables;  // their names
  double reach = 100;               // beyond the constants
  int top = 0, points = 0;
  // of the last evaluation
  slong range = 0;     // all intermediate values are within 2^-range and 2^range
  bool real = true;    // no intermediate value left the real line
  bool finite = true;  // every value asked for is finite

  Work(const Circuit& c, uint64_t s, Budget& b) : circuit(c), seed(s), budget(b), values(c.size() + 2) {}

  void need(int a, int b) {
    needed.assign(circuit.size(), 0);
    top = std::max(a, b);
    needed[a] = needed[b] = 1;
    for (int n = top; n >= 0; --n) {
      if (!needed[n]) continue;
      if (circuit[n].a >= 0) needed[circuit[n].a] = 1;
      if (circuit[n].b >= 0) needed[circuit[n].b] = 1;
    }
    reach = 100;
    variables.clear();
    for (int n = 0; n <= top; ++n) {
      const CircuitNode& node = circuit[n];
      if (!needed[n]) continue;
      if (node.op == CircuitOp::variable) variables.push_back(node.name);
      double size = node.op != CircuitOp::constant ? 1
                    : node.denominator == 0
                        ? 1e5
                        : std::abs(static_cast<double>(node.numerator)) / static_cast<double>(node.denominator);
      if (size > 0) reach = std::min(reach * std::max(size, 1 / size), 1e5);
    }
    points = kAlike + 2 * static_cast<int>(std::clamp<size_t>(variables.size(), 3, kSigned));
  }

  size_t index_of(uint64_t name) const {
    return static_cast<size_t>(std::find(variables.begin(), variables.end(), name) - variables.begin());
  }

  // A step is about 50 ns: an addition of 64 bits, or a thirtieth of an exponential.
  static int64_t steps_of(const CircuitNode& node, int64_t words) {
    if (node.op < CircuitOp::power) return words + static_cast<int64_t>(node.digits.size()) / 64;
    int64_t weight = node.op == CircuitOp::factorial || node.op == CircuitOp::binomial ? 300 : 30;
    return weight * static_cast<int64_t>(static_cast<double>(words) * std::sqrt(static_cast<double>(words)));
  }

  bool evaluate(int point, slong prec) {
    range = 0;
    real = finite = true;
    beyond.assign(circuit.size(), 0);
    int64_t words = prec / 64 + 1;
    for (int n = 0; n <= top; ++n) {
      if (!needed[n]) continue;
      const CircuitNode& node = circuit[n];
      if (!budget.spend(steps_of(node, words))) return false;
      acb_struct* z = values[n];
      switch (node.op) {
        case CircuitOp::constant:
          balls::set_constant(z, node, prec);
          break;
        case CircuitOp::variable:
          set_sample(z, scramble(seed ^ scramble(node.name + point)), index_of(node.name), point, reach);
          break;
        case CircuitOp::pi:
          acb_const_pi(z, prec);
          break;
        case CircuitOp::e:
          acb_zero(z), arb_const_e(acb_realref(z), prec);
          break;
        case CircuitOp::i:
          acb_onei(z);
          break;
        case CircuitOp::opaque:
          acb_indeterminate(z);
          break;
        default: {
          acb_struct* y = node.b >= 0 ? values[node.b] : nullptr;
          bool known = acb_is_finite(values[node.a]) && (y == nullptr || acb_is_finite(y));
          if (!known) {
            acb_indeterminate(z);
            break;
          }
          balls::apply(z, node.op, values[node.a], y, circuit[node.b >= 0 ? node.b : node.a], prec);
        }
      }
      if (!acb_is_finite(z)) {
        finite = false;
        return true;
      }
      // The sine of no angle: what comes of it counts, too.
      bool outside = node.op == CircuitOp::arcsin || node.op == CircuitOp::arccos;
      beyond[n] = (outside && !acb_is_real(z)) || (node.a >= 0 && beyond[node.a]) || (node.b >= 0 && beyond[node.b]);
      if (!node.complex && !beyond[n] && !acb_is_real(z)) real = false;
      range = std::max(range, exponent_of(z));
    }
    return true;
  }

  // -1: budget; 0: undefined here; 1: the ball of the difference excludes zero; 2: it contains zero
  int difference(int a, int b, int point, slong prec) {
    if (!evaluate(point, prec)) return -1;
    if (!finite) return 0;
    acb_struct* d = values[circuit.size()];
    acb_sub(d, values[a], values[b], prec);
    if (!acb_is_finite(d)) return 0;
    return acb_contains_zero(d) ? 2 : 1;
  }

  bool divides_by_zero() const {
    for (int n = 0; n <= top; ++n) {
      const CircuitNode& node = circuit[n];
      if (!needed[n] || node.op != CircuitOp::div) continue;
      if (circuit[node.b].denominator != 0 && circuit[node.b].numerator == 0) return true;
    }
    return false;
  }

  // The last difference is below 2^-bits.
  bool smaller_than(slong bits) { return !balls::larger_than(values[circuit.size()], -bits); }

  // Bits at which a difference of algebraic numbers that contains zero is zero (Burnikel, Funke, Mehlhorn, Schirra and
  // Schmitt, 2001: |E| >= 1 / (u^(D-1) l)); 0: not algebraic.
  double separation(int a, int b) const {
    std::vector<std::array<double, 2>> bound(needed.size());
    double degree = 1;
    bool has_i = false;
    auto sum = [](std::array<double, 2> x, std::array<double, 2> y) {
      return std::array{std::max(x[0] + y[1], x[1] + y[0]) + 1, x[1] + y[1]};
    };
    for (int n = 0; n <= top; ++n) {
      if (!needed[n]) continue;
      const CircuitNode& node = circuit[n];
      auto& [u, l] = bound[n];
      auto x = node.a >= 0 ? bound[node.a] : std::array<double, 2>{};
      auto y = node.b >= 0 ? bound[node.b] : std::array<double, 2>{};
      switch (node.op) {
        case CircuitOp::constant:
          if (node.denominator != 0) {
            u = std::log2(std::max(1.0, std::abs(static_cast<double>(node.numerator))));
            l = std::log2(static_cast<double>(node.denominator));
          } else {
            u = 3.33 * static_cast<double>(node.digits.size()) +
                3.33 * static_cast<double>(std::max<int64_t>(0, node.exponent));
            l = 3.33 * static_cast<double>(std::max<int64_t>(0, -node.exponent));
          }
          break;
        case CircuitOp::i:
          has_i = true;
          break;
        case CircuitOp::add:
        case CircuitOp::sub:
          bound[n] = sum(x, y);
          break;
        case CircuitOp::mul:
          u = x[0] + y[0], l = x[1] + y[1];
          break;
        case CircuitOp::div:
          u = x[0] + y[1], l = x[1] + y[0];
          break;
        case CircuitOp::power: {
          const CircuitNode& exponent = circuit[node.b];
          if (exponent.denominator == 0) return 0;
          auto q = static_cast<double>(exponent.denominator), p = std::abs(static_cast<double>(exponent.numerator));
          if (q > 1) {
            degree *= q;
            x = x[0] >= x[1] ? std::array{(x[0] + (q - 1) * x[1]) / q, x[1]}
                             : std::array{x[0], ((q - 1) * x[0] + x[1]) / q};
          }
          u = x[0] * p, l = x[1] * p;
          if (exponent.numerator < 0) std::swap(u, l);
          break;
        }
        default:
          return 0;
      }
    }
    if (has_i) degree *= 2;
    auto total = sum(bound[a], bound[b]);
    return (degree - 1) * total[0] + total[1] + 1;
  }

  int proof(int a, int b) const;
  Decision numbers(int a, int b);
  Decision functions(int a, int b);
  // equal, to 100 bits beyond every intermediate value, at one point
  Decision agreement(int a, int b, int point);
};

Decision Exact::Work::agreement(int a, int b, int point) {
  double bound = circuit[a].open || circuit[b].open ? 0 : separation(a, b);
  slong prec = std::max<slong>(256 + 2 * range, 128);
  bool exact = bound > 0 && bound + static_cast<double>(range) + 64 <= kPrecisionLimit;
  if (exact) prec = std::max<slong>(static_cast<slong>(bound) + range + 64, 128);
  for (int round = 0; round < 4; ++round, prec *= 2) {
    if (prec > kPrecisionLimit) return {Decision::undecided, "numbers too large or too close to compare", true};
    int outcome = difference(a, b, point, prec);
    if (outcome < 0) return {Decision::undecided, "the comparison takes more steps than the budget", true};
    if (outcome == 0) return {};
    if (outcome == 1) return {Decision::different, "different numbers", false};
    if (exact && smaller_than(static_cast<slong>(bound) + 1))
      return {Decision::equal, "equal algebraic numbers", false};
    if (!exact && smaller_than(range + 100)) return {Decision::equal, "numbers that agree to over 100 bits", false};
  }
  return {};
}

// Calcium cannot be interrupted: only few steps with small numbers, small roots and no nested functions get there.
int Exact::Work::proof(int a, int b) const {
  constexpr int kSteps = 24, kRoots = 2, kFunctions = 3;
  static_assert(static_cast<int>(CircuitOp::constant) == 0 && static_cast<int>(CircuitOp::arctan) == 17,
                "proof.c numbers the operations the same way");
  std::vector<ucas_proof_step> steps;
  std::vector<int> place(needed.size(), -1);
  int roots = 0, functions = 0;
  for (int n = 0; n <= top; ++n) {
    if (!needed[n]) continue;
    const CircuitNode& node = circuit[n];
    if (node.op > CircuitOp::arctan || (node.op == CircuitOp::constant && node.denominator == 0)) return -1;
    if (std::abs(node.numerator) > 1'000'000 || node.denominator > 1'000'000) return -1;
    if (node.op == CircuitOp::power) {
      const CircuitNode& exponent = circuit[node.b];
      if (exponent.denominator == 0 || exponent.denominator > 4 || std::abs(exponent.numerator) > 8) return -1;
      roots += exponent.denominator > 1;
    }
    functions += node.op >= CircuitOp::exp;
    place[n] = static_cast<int>(steps.size());
    auto at = [&](int m) { return m < 0 ? -1 : place[m]; };
    steps.push_back({static_cast<int>(node.op), at(node.a), at(node.b), node.numerator, node.denominator});
  }
  if (static_cast<int>(steps.size()) > kSteps || roots > kRoots || functions > kFunctions) return -1;
  return ucas_prove_equal(steps.data(), static_cast<int>(steps.size()), place[a], place[b]);
}

Decision Exact::Work::numbers(int a, int b) {
  int outcome = difference(a, b, 0, 64);
  if (outcome < 0) return {Decision::undecided, "the comparison takes more steps than the budget", true};
  if (outcome == 1) return {Decision::different, "different numbers", false};
  bool known = outcome == 2;
  slong wide = range;
  ModularZero zero = zero_modulo_primes(circuit, a, b, seed, budget);
  if (zero == ModularZero::yes) return {Decision::equal, "the same number", false};
  if (zero == ModularZero::no) return {Decision::different, "different numbers", false};
  if (!known) {
    bool nonsense = circuit[a].opaque || circuit[b].opaque || divides_by_zero();
    return {Decision::undecided, nonsense ? "not a number" : "numbers too large to compare", !nonsense};
  }
  if (separation(a, b) == 0) {
    int proved = budget.spend(50'000) ? proof(a, b) : -1;
    if (proved == 1) return {Decision::equal, "proved equal", false};
    if (proved == 0) return {Decision::different, "proved different", false};
  }
  range = wide;
  return agreement(a, b, 0);
}

Decision Exact::Work::functions(int a, int b) {
  // Where both sides are real at some points, these alone decide: sqrt(x-2) sqrt(x-3) is sqrt((x-2)(x-3)) where it is
  // real. Otherwise all points do.
  int agreeing[2] = {}, differing[2] = {};
  int candidates[kPoints], count = 0;
  for (int point = 0; point < points; ++point) {
    int outcome = difference(a, b, point, 64);
    if (outcome < 0) return {Decision::undecided, "the comparison takes more steps than the budget", true};
    if (outcome == 0) continue;
    ++(outcome == 1 ? differing : agreeing)[real ? 1 : 0];
    if (outcome == 1 && real) return {Decision::different, "different at a sample point", false};
    if (outcome == 2) candidates[count++] = point;
  }
  ModularZero zero = zero_modulo_primes(circuit, a, b, seed, budget);
  if (zero == ModularZero::yes) return {Decision::equal, "the same expression", false};
  if (zero == ModularZero::no) return {Decision::different, "different expressions", false};
  if (agreeing[1] < 2 && differing[0] > 0) return {Decision::different, "different at a sample point", false};
  if (agreeing[0] + agreeing[1] < 2) return {Decision::undecided, "not shown to be equal", false};
  int done = 0;
  Decision last{Decision::undecided, "not shown to be equal", false};
  for (int k = 0; k < count && done < 3; ++k) {
    if (difference(a, b, candidates[k], 64) != 2) continue;
    if (!real && agreeing[1] >= 2) continue;
    Decision decision = agreement(a, b, candidates[k]);
    if (decision.answer == Decision::different) return decision;
    if (decision.answer == Decision::equal) {
      ++done;
    } else {
      last = decision;  // a point near a pole; others may do
    }
  }
  if (done < 2) return last;
  return {Decision::equal, "functions that agree to over 100 bits at random points", false};
}

Exact::Exact(const Circuit& circuit, uint64_t seed, Budget& budget)
    : work_(std::make_unique<Work>(circuit, seed, budget)) {
  thread_local ThreadCaches caches;
  (void)caches;
}

Exact::~Exact() = default;

Decision Exact::equal(int a, int b) {
  if (a == b) return {Decision::equal, "the same expression", false};
  const Circuit& c = work_->circuit;
  if (c[a].denominator != 0 && c[b].denominator != 0) return {Decision::different, "different numbers", false};
  work_->need(a, b);
  if (c[a].opaque || c[b].opaque) {
    ModularZero zero = zero_modulo_primes(c, a, b, work_->seed, work_->budget);
    if (zero == ModularZero::yes) return {Decision::equal, "the same expression", false};
    return {Decision::undecided, "not shown to be equal", false};
  }
  return c[a].open || c[b].open ? work_->functions(a, b) : work_->numbers(a, b);
}

Decision Exact::proportional(int a, int b, bool positive) {
  // The quotient at a few points is the factor; it is a constant if a(x) b(y) = a(y) b(x) for all of them.
  work_->need(a, b);
  const Circuit& c = work_->circuit;
  if (c[a].opaque || c[b].opaque) return equal(a, b);
  constexpr slong kBits = 256;
  acb_t first, quotient, product;
  acb_init(first), acb_init(quotient), acb_init(product);
  int agreeing = 0;
  Decision decision{Decision::undecided, "not shown to be equal", false};
  for (int point = 0; point < work_->points; ++point) {
    if (!work_->evaluate(point, kBits)) {
      decision = {Decision::undecided, "the comparison takes more steps than the budget", true};
      break;
    }
    acb_struct *x = work_->values[a], *y = work_->values[b];
    if (!work_->finite || acb_contains_zero(x) || acb_contains_zero(y)) continue;
    if (point >= kAlike && !work_->real) continue;
    acb_div(quotient, x, y, kBits);
    if (agreeing == 0) {
      acb_set(first, quotient);
    } else if (!acb_overlaps(first, quotient)) {
      decision = {Decision::different, "different equations", false};
      break;
    }
    if (positive && !arb_is_positive(acb_realref(quotient))) {
      decision = {Decision::different, "the inequality the other way round", false};
      break;
    }
    if (++agreeing >= 3) decision = {Decision::equal, "the same equation up to a factor", false};
  }
  acb_clear(first), acb_clear(quotient), acb_clear(product);
  return decision;
}

std::optional<int> Exact::sign(int a) {
  const CircuitNode& node = work_->circuit[a];
  if (node.denominator != 0) return node.numerator < 0 ? -1 : node.numerator > 0 ? 1 : 0;
  if (node.open || node.opaque) return std::nullopt;
  work_->need(a, a);
  for (slong prec : {64, 256, 1024, 4096}) {
    if (!work_->evaluate(0, prec) || !work_->finite) return std::nullopt;
    acb_struct* z = work_->values[a];
    // an imaginary part that may be zero, as of the casus irreducibilis, counts as none once it is tiny
    if (!arb_contains_zero(acb_imagref(z))) return std::nullopt;
    if (arb_is_positive(acb_realref(z))) return 1;
    if (arb_is_negative(acb_realref(z))) return -1;
    if (arb_is_zero(acb_realref(z))) return 0;
  }
  return std::nullopt;
}

namespace {

struct Field {
  uint64_t p = 0;
  uint64_t i = 0;  // a root of -1

  uint64_t mul(uint64_t x, uint64_t y) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(x) * y % p);
  }
  uint64_t add(uint64_t x, uint64_t y) const { return x + y >= p ? x + y - p : x + y; }
  uint64_t sub(uint64_t x, uint64_t y) const { return x >= y ? x - y : x + p - y; }
  uint64_t pow(uint64_t x, uint64_t n) const {
    uint64_t r = 1;
    for (; n != 0; n >>= 1, x = mul(x, x)) {
      if (n & 1) r = mul(r, x);
    }
    return r;
  }
  uint64_t inverse(uint64_t x) const { return pow(x, p - 2); }
  uint64_t of(int64_t v) const {
    uint64_t r = (v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v)) % p;
    return v < 0 && r != 0 ? p - r : r;
  }
};

bool is_prime(const Field& f) {  // Miller and Rabin; these bases are exact below 2^64
  uint64_t d = f.p - 1;
  int twos = 0;
  for (; d % 2 == 0; d /= 2) ++twos;
  for (uint64_t base : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37}) {
    uint64_t x = f.pow(base, d);
    if (x == 1 || x == f.p - 1) continue;
    bool composite = true;
    for (int k = 1; k < twos && composite; ++k) {
      x = f.mul(x, x);
      composite = x != f.p - 1;
    }
    if (composite) return false;
  }
  return true;
}

// Primes = 1 (mod 4), so that i has an image. Chosen by the seed: no number can be made that is zero modulo them.
constexpr int kPrimes = 64;
const std::array<Field, kPrimes>& primes() {
  static const std::array<Field, kPrimes> table = [] {
    std::array<Field, kPrimes> fields;
    for (int k = 0; k < kPrimes; ++k) {
      Field f;
      f.p = (uint64_t{1} << 60) | (scramble(static_cast<uint64_t>(k)) >> 4) | 1;
      f.p -= (f.p & 3) == 3 ? 2 : 0;
      while (!is_prime(f)) f.p += 4;
      for (uint64_t g = 2; f.i == 0; ++g) {
        uint64_t root = f.pow(g, (f.p - 1) / 4);
        if (f.mul(root, root) == f.p - 1) f.i = root;
      }
      fields[k] = f;
    }
    return fields;
  }();
  return table;
}

struct Evaluation {
  const Circuit& circuit;
  const Field& field;
  uint64_t seed;
  std::vector<uint64_t>& value;
  std::vector<char>& defined;

  uint64_t unknown(uint64_t kind, uint64_t x, uint64_t y) const {
    return scramble(scramble(scramble(seed ^ kind) ^ x) ^ y) % field.p;
  }

  uint64_t constant(const CircuitNode& node, bool& ok) const {
    if (node.denominator != 0) {
      return field.mul(field.of(node.numerator), field.inverse(field.of(node.denominator)));
    }
    uint64_t r = 0;
    for (char c : node.digits) r = field.add(field.mul(r, 10), static_cast<uint64_t>(c - '0'));
    uint64_t scale = field.pow(10, static_cast<uint64_t>(node.exponent < 0 ? -node.exponent : node.exponent));
    return field.mul(r, node.exponent < 0 ? field.inverse(scale) : scale);
  }

  uint64_t factorial(int64_t n) const {
    uint64_t r = 1;
    for (int64_t k = 2; k <= n; ++k) r = field.mul(r, static_cast<uint64_t>(k));
    return r;
  }

  uint64_t operator()(const CircuitNode& node, bool& ok) const {
    uint64_t x = node.a >= 0 ? value[node.a] : 0, y = node.b >= 0 ? value[node.b] : 0;
    auto kind = static_cast<uint64_t>(node.op);
    switch (node.op) {
      case CircuitOp::constant:
        return constant(node, ok);
      case CircuitOp::variable:
        return unknown(kind, node.name, 0);
      case CircuitOp::i:
        return field.i;
      case CircuitOp::add:
        return field.add(x, y);
      case CircuitOp::sub:
        return field.sub(x, y);
      case CircuitOp::mul:
        return field.mul(x, y);
      case CircuitOp::div:
        ok = y != 0;
        return ok ? field.mul(x, field.inverse(y)) : 0;
      case CircuitOp::power: {
        const CircuitNode& exponent = circuit[node.b];
        if (exponent.denominator != 1) return unknown(kind, x, y);
        int64_t n = exponent.numerator;
        ok = x != 0 || n > 0;
        uint64_t r = field.pow(x, static_cast<uint64_t>(n < 0 ? -n : n));
        return n < 0 && ok ? field.inverse(r) : r;
      }
      case CircuitOp::factorial:
        if (circuit[node.a].denominator == 1 && circuit[node.a].numerator >= 0 && circuit[node.a].numerator <= 3249) {
          return factorial(circuit[node.a].numerator);
        }
        return unknown(kind, x, 0);
      case CircuitOp::binomial: {
        const CircuitNode &n = circuit[node.a], &k = circuit[node.b];
        if (n.denominator != 1 || k.denominator != 1 || k.numerator < 0 || n.numerator < k.numerator ||
            n.numerator > 3249) {
          return unknown(kind, x, y);
        }
        return field.mul(factorial(n.numerator),
                         field.inverse(field.mul(factorial(k.numerator), factorial(n.numerator - k.numerator))));
      }
      case CircuitOp::opaque:
        return unknown(kind ^ node.name, x, y);
      default:
        return unknown(kind, x, y);  // functions of equal arguments are equal
    }
  }
};

}  // namespace

ModularZero zero_modulo_primes(const Circuit& circuit, int a, int b, uint64_t seed, Budget& budget) {
  int top = a > b ? a : b;
  std::vector<uint64_t> value(top + 1);
  std::vector<char> defined(value.size());
  bool exact = circuit[a].rational && circuit[b].rational;
  uint64_t random = scramble(seed);
  for (int k = 0; k < 2; ++k, random = scramble(random)) {
    const Field& field = primes()[(random % (kPrimes / 2)) + k * (kPrimes / 2)];
    Evaluation evaluation{circuit, field, random, value, defined};
    if (!budget.spend(20 * (top + 1))) return ModularZero::unknown;
    for (int n = 0; n <= top; ++n) {
      const CircuitNode& node = circuit[n];
      bool ok = (node.a < 0 || defined[node.a]) && (node.b < 0 || defined[node.b]);
      if (ok) {
        if (!budget.spend(static_cast<int64_t>(node.digits.size()) / 10)) return ModularZero::unknown;
        value[n] = evaluation(node, ok);
      }
      defined[n] = ok;
    }
    if (!defined[a] || !defined[b]) return ModularZero::unknown;
    if (value[a] != value[b]) {
      return exact ? ModularZero::no : ModularZero::unknown;
    }
  }
  return ModularZero::yes;
}

}  // namespace ucas::math
