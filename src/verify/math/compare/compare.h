// Two answers, one verdict. Most answers are plain numbers or the same text: those are decided here, from normalised
// text; everything else is parsed (verify/math/read/parser.h) and compared as trees (verify/math/compare/equal.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "verify/math/compare/equal.h"
#include "verify/math/exact/number.h"
#include "verify/math/read/parser.h"

namespace ucas::math {

struct ReadAnswer {
  enum class Form : uint8_t { empty, broken, too_long, number, text };
  Form form = Form::empty;
  std::string key;       // of the text: equal keys, equal texts
  std::string variable;  // "x" of "x = 5"
  std::string unit;      // "cm" of 5\text{ cm}, "%" of 50\%; "" for none
  Rational number;       // where form is number
  std::string source;    // the answer as written
  // Parsed when first needed; an answer belongs to one thread.
  mutable std::shared_ptr<const ParseResult> parsed;

  const ParseResult& tree() const;
  size_t parts() const;  // values of a list or set, 1 for anything else
};

ReadAnswer read_answer(std::string_view text);

Comparison compare_answers(const ReadAnswer& gold, const ReadAnswer& answer, Budget& budget,
                           const MathOptions& options = {});

}  // namespace ucas::math
