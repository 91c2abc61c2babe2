// Two answers, one verdict. This is the place that a fuller reading of mathematics extends: read_answer() learns more
// forms, compare_answers() more ways to be equal; what is around them stays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/verdict.h"
#include "verify/math/number.h"

namespace ucas {

struct MathAnswer {
  enum class Form : uint8_t { empty, broken, too_long, number, text };
  Form form = Form::empty;
  std::string key;       // of the text: equal keys, equal texts
  std::string variable;  // "x" of "x = 5"
  std::string unit;      // "cm" of 5\text{ cm}, "%" of 50\%; "" for none
  Rational number;       // where form is number
};

MathAnswer read_answer(std::string_view text);

struct Comparison {
  VerdictKind kind = VerdictKind::unparseable;
  std::string reason;
};
Comparison compare_answers(const MathAnswer& gold, const MathAnswer& answer, Budget& budget);

}  // namespace ucas
