// Functions of complex balls (Arb), real where the reals allow it. Every result is finite, or acb_indeterminate where
// it is undefined or too large to work with: Arb cannot be interrupted. Only exact.cpp and balls.cpp see Arb's types.
#pragma once

#include "verify/math/exact/exact.h"
#include "verify/math/exact/flint.h"

namespace ucas::math {

// The difference of two nodes modulo large primes at random points (Schwartz 1980, Zippel 1979).
// yes: zero at all points; functions beyond + - * / count as unknowns that depend on their arguments only. no: a
// difference of rational functions or numbers that is not zero. unknown: anything else.
enum class ModularZero : uint8_t { no, yes, unknown };

// A number that looks random, the same for the same x (splitmix64).
inline uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

ModularZero zero_modulo_primes(const Circuit& circuit, int a, int b, uint64_t seed, Budget& budget);

}  // namespace ucas::math

namespace ucas::math::balls {

bool larger_than(const acb_t z, slong bits);  // |z| > 2^bits, as far as the ball shows
void set_constant(acb_t z, const CircuitNode& node, slong prec);
// r = op(x, y); y is null for functions of one argument, `right` the node of the last argument.
void apply(acb_t r, CircuitOp op, acb_t x, acb_t y, const CircuitNode& right, slong prec);

}  // namespace ucas::math::balls
