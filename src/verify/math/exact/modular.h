// The difference of two nodes modulo large primes at random points (Schwartz 1980, Zippel 1979).
#pragma once

#include <cstdint>

#include "verify/math/exact/circuit.h"
#include "verify/math/exact/number.h"

namespace ucas::math {

// yes: zero at all points; functions beyond + - * / count as unknowns that depend on their arguments only. no: a
// difference of rational functions or numbers that is not zero. unknown: anything else.
enum class ModularZero : uint8_t { no, yes, unknown };

// A number that looks drawn at random, the same for the same x (splitmix64).
inline uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

ModularZero zero_modulo_primes(const Circuit& circuit, int a, int b, uint64_t seed, Budget& budget);

}  // namespace ucas::math
