#include "verify/math/exact/balls.h"

#include <array>
#include <vector>

namespace ucas::math {

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
  uint64_t draw = scramble(seed);
  for (int k = 0; k < 2; ++k, draw = scramble(draw)) {
    const Field& field = primes()[(draw % (kPrimes / 2)) + k * (kPrimes / 2)];
    Evaluation evaluation{circuit, field, draw, value, defined};
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
