// Two answers, one verdict. Most answers are plain numbers or the same text: those are decided here, from normalised
// text; everything else is parsed (verify/math/parser.h) and compared as trees (verify/math/equal.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/verdict.h"
#include "verify/math/equal.h"
#include "verify/math/number.h"
#include "verify/math/parser.h"

namespace ucas {

struct MathAnswer {
  enum class Form : uint8_t { empty, broken, too_long, number, text };
  Form form = Form::empty;
  std::string key;       // of the text: equal keys, equal texts
  std::string variable;  // "x" of "x = 5"
  std::string unit;      // "cm" of 5\text{ cm}, "%" of 50\%; "" for none
  Rational number;       // where form is number
  std::string source;    // the answer as written
  // Parsed when first needed; an answer belongs to one thread.
  mutable std::shared_ptr<const math::ParseResult> parsed;

  const math::ParseResult& tree() const;
  size_t parts() const;  // values of a list or set, 1 for anything else
};

MathAnswer read_answer(std::string_view text);

struct AnswerComparison {
  VerdictKind kind = VerdictKind::unparseable;
  std::string reason;
};
AnswerComparison compare_answers(const MathAnswer& gold, const MathAnswer& answer, Budget& budget,
                                 const math::Rules& rules = {});

}  // namespace ucas
