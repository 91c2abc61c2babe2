// The graders, one row each: X(kind, name in options and files). A row without its make_KIND_grader() fails to link.
#pragma once

#include <memory>

#include "verify/grader.h"

// math            math/: the last box, decided by exact arithmetic
// letter          letter.h: the choice letter in the response
// choice          the same, of a response that the evaluation makes from the choice of greatest log-prob
// released_train  text_graders.h: the reward of the released training code
// strict_numeric  text_graders.h: plain numbers only
#define UCAS_GRADERS(X)               \
  X(math, "math")                     \
  X(letter, "letter")                 \
  X(choice, "choice")                 \
  X(released_train, "released-train") \
  X(strict_numeric, "strict-numeric")

namespace ucas {

#define UCAS_DECLARE(kind, name) std::unique_ptr<Grader> make_##kind##_grader(Extract extract);
UCAS_GRADERS(UCAS_DECLARE)
#undef UCAS_DECLARE

#define UCAS_KIND(kind, name) kind,
enum class GraderKind : uint8_t { UCAS_GRADERS(UCAS_KIND) };
#undef UCAS_KIND

const char* name_of(GraderKind kind);
// `extract`: where an answer is looked for that does not say it itself.
std::unique_ptr<Grader> make_grader(GraderKind kind, Extract extract = Extract::strict);

}  // namespace ucas
