// Does an answer say what the gold answer says? Numbers and functions by exact arithmetic (verify/math/exact.h), the
// rest by structure: sets and lists without order, tuples, matrices, intervals and inequalities as sets of reals,
// equations up to a factor, named values, units. The rules, with what is never paid, are listed in docs/verifier.md.
#pragma once

#include "core/verdict.h"
#include "verify/math/expr.h"
#include "verify/math/number.h"

namespace ucas::math {

struct Equality {
  VerdictKind kind = VerdictKind::unparseable;
  const char* reason = "";
};

// What test suites of other graders may ask for.
struct Rules {
  int precision = -1;  // where one number is a decimal fraction, so many decimals must agree; -1: digits shown
  bool relation_for_set = true;  // x > 3 counts for a gold of (3, \infty)
};

Equality compare_trees(const Tree& gold, const Tree& answer, Budget& budget, const Rules& rules = {});

}  // namespace ucas::math
