// The graders, one row each: X(kind, name in options and files). A row without its make_KIND_grader() fails to link.
#pragma once

#include <memory>

#include "verify/code/sandbox.h"
#include "verify/grader.h"

// math            math/: the last box, decided by exact arithmetic
// letter          letter.h: the choice letter in the response
// choice          the same, of a response that the evaluation makes from the choice of greatest log-prob
// released_train  text_graders.h: the reward of the released training code
// strict_numeric  text_graders.h: plain numbers only
// code            code/code_grader.h: a program, run in a sandbox against tests
#define UCAS_GRADERS(X)               \
  X(math, "math")                     \
  X(letter, "letter")                 \
  X(choice, "choice")                 \
  X(released_train, "released-train") \
  X(strict_numeric, "strict-numeric") \
  X(code, "code")

namespace ucas {

// What graders can be told.
struct GraderSetup {
  GraderSetup(Extract extract = Extract::strict, code::CodeOptions code = {})  // NOLINT: most need no more
      : extract(extract), code(std::move(code)) {}
  Extract extract;  // where an answer is looked for that does not say it itself
  code::CodeOptions code;
};

#define UCAS_DECLARE(kind, name) std::unique_ptr<Grader> make_##kind##_grader(const GraderSetup& setup);
UCAS_GRADERS(UCAS_DECLARE)
#undef UCAS_DECLARE

#define UCAS_KIND(kind, name) kind,
enum class GraderKind : uint8_t { UCAS_GRADERS(UCAS_KIND) };
#undef UCAS_KIND

const char* name_of(GraderKind kind);
std::unique_ptr<Grader> make_grader(GraderKind kind, const GraderSetup& setup = {});

}  // namespace ucas
