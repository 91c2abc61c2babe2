// Does an answer say what the gold answer says? Numbers and functions by exact arithmetic (verify/math/exact/exact.h),
// the rest by structure: sets and lists without order, tuples, matrices, intervals and inequalities as sets of reals,
// equations up to a factor, named values, units. The rules, with what is never paid, are listed in docs/verifier.md.
#pragma once

#include <string>

#include "verify/grader.h"
#include "verify/math/exact/number.h"
#include "verify/math/read/expr.h"

namespace ucas::math {

struct Comparison {
  VerdictKind kind = VerdictKind::unparseable;
  std::string reason;
};

Comparison compare_trees(const Tree& gold, const Tree& answer, Budget& budget, const MathOptions& options = {});

}  // namespace ucas::math
