// Two answers, one verdict. Most answers are plain numbers or the same text: those are decided here, from normalised
// text; everything else is parsed (verify/math/read/parser.h) and compared as trees (verify/math/compare/compare.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "verify/grader.h"
#include "verify/math/exact/exact.h"
#include "verify/math/read/expr.h"
#include "verify/math/read/parser.h"

namespace ucas::math {

// Does an answer say what the gold answer says? Numbers and functions by exact arithmetic (verify/math/exact/exact.h),
// the rest by structure: sets and lists without order, tuples, matrices, intervals and inequalities as sets of reals,
// equations up to a factor, named values, units. The rules, with what is never right, are in docs/verifier.md.

struct Comparison {
  VerdictKind kind = VerdictKind::unparseable;
  std::string reason;
};

Comparison compare_trees(const Tree& gold, const Tree& answer, Budget& budget, const MathOptions& options = {});

struct ReadAnswer {
  enum class Form : uint8_t { empty, broken, too_long, number, text };
  Form form = Form::empty;
  std::string key;        // of the text: equal keys, equal texts
  std::string variable;   // "x" of "x = 5"
  bool percent = false;   // 50\%
  bool measured = false;  // a number and more: 3.5 cm
  std::string number;     // in one spelling, where form is number
  std::string source;     // the answer as written
  // Parsed when first needed; an answer belongs to one thread.
  mutable std::shared_ptr<const ParseResult> parsed;

  const ParseResult& tree() const;
  size_t parts() const;  // values of a list or set, 1 for anything else
};

ReadAnswer read_answer(std::string_view text);

Comparison compare_answers(const ReadAnswer& gold, const ReadAnswer& answer, Budget& budget,
                           const MathOptions& options = {});

}  // namespace ucas::math
