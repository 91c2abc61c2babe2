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

// `precision` >= 0: where one of two numbers is a decimal fraction, so many decimals must agree (as test suites of
// other graders ask for); otherwise the digits shown decide.
Equality compare_trees(const Tree& gold, const Tree& answer, Budget& budget, int precision = -1);

}  // namespace ucas::math
