// Exact questions about numbers and functions: are two nodes of a circuit equal, which sign has a number.
// The work is done by FLINT, Arb and Calcium, which cannot be interrupted: every call is bounded beforehand from the
// sizes of its operands and counted against a budget. Steps of a decision, cheapest first:
//   1. balls (Arb, 64 bits) at sample points: a difference that excludes zero proves "different";
//   2. the difference modulo two 61-bit primes at random points (seeded by the caller, from the inputs): zero proves
//      "equal" for rational functions with error below 2^-60, also where functions of equal arguments occur in both;
//   3. algebraic numbers: the BFMSS separation bound gives the precision at which "contains zero" means "is zero";
//   4. numbers with pi, e, logarithms, trigonometric functions: Calcium's proof;
//   5. agreement to 100 bits beyond the smallest and largest intermediate value, at every sample point.
// Threads: an Exact belongs to one thread; any number of them may run at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "verify/math/exact/circuit.h"

namespace ucas::math {

// Steps that one comparison may take. The same inputs always spend the same.
struct Budget {
  int64_t steps = 1'000'000;
  bool spend(int64_t n) {
    steps -= n;
    return steps >= 0;
  }
};

struct Decision {
  enum Answer : uint8_t { different, equal, undecided } answer = undecided;
  const char* how = "";
  bool over_budget = false;  // undecided because the budget does not suffice
};

class Exact {
 public:
  Exact(const Circuit& circuit, uint64_t seed, Budget& budget);
  ~Exact();
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  Decision equal(int a, int b);
  // a = c b for a constant c other than 0 (equations that mean the same); with `positive`, c > 0.
  Decision proportional(int a, int b, bool positive);
  // -1, 0, 1 of a real number without variables; nullopt: not one, or undecided.
  std::optional<int> sign(int a);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace ucas::math
