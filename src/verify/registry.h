// The graders, one row each: X(kind, name in options and files). A row without its make_KIND_grader() fails to link.
#pragma once

#include <array>
#include <memory>

#include "verify/grader.h"
#include "verify/sandbox/sandbox.h"

// math       math/: the last box, decided by exact arithmetic
// letter     text_graders.h: the choice letter in the response
// choice     the same, of a response that the evaluation makes from the choice of greatest log-prob
// numeric    numeric.cpp: a number within a tolerance
// countdown  countdown.cpp: an expression that reaches a target with given numbers
// code       code/code_grader.h: a program, run in a sandbox against tests
#define UCAS_GRADERS(X)     \
  X(math, "math")           \
  X(letter, "letter")       \
  X(choice, "choice")       \
  X(numeric, "numeric")     \
  X(countdown, "countdown") \
  X(code, "code")

namespace ucas {

// What graders can be told.
struct GraderSetup {
  GraderSetup(Extract extract = Extract::strict, code::CodeOptions code = {}, double tolerance = 1e-4)  // NOLINT
      : extract(extract), code(std::move(code)), tolerance(tolerance) {}
  Extract extract;  // where an answer is looked for that does not say it itself
  code::CodeOptions code;
  double tolerance;  // of numeric, relative
};

#define UCAS_DECLARE(kind, name) std::unique_ptr<Grader> make_##kind##_grader(const GraderSetup& setup);
UCAS_GRADERS(UCAS_DECLARE)
#undef UCAS_DECLARE

#define UCAS_KIND(kind, name) kind,
enum class GraderKind : uint8_t { UCAS_GRADERS(UCAS_KIND) };
#undef UCAS_KIND

#define UCAS_NAME(kind, name) name,
constexpr auto names(GraderKind) { return std::to_array<const char*>({UCAS_GRADERS(UCAS_NAME)}); }
#undef UCAS_NAME

std::unique_ptr<Grader> make_grader(GraderKind kind, const GraderSetup& setup = {});

}  // namespace ucas
