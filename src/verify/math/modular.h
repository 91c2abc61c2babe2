// The difference of two nodes modulo large primes at random points (Schwartz 1980, Zippel 1979).
#pragma once

#include <cstdint>

#include "verify/math/circuit.h"
#include "verify/math/number.h"

namespace ucas::math {

// yes: zero at all points; functions beyond + - * / count as unknowns that depend on their arguments only. no: a
// difference of rational functions or numbers that is not zero. unknown: anything else.
enum class ModularZero : uint8_t { no, yes, unknown };

ModularZero zero_modulo_primes(const Circuit& circuit, int a, int b, uint64_t seed, Budget& budget);

}  // namespace ucas::math
