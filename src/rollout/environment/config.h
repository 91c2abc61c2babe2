// Options of multi-turn rollouts, in [rollout] and of `ucas evaluate`: which environment answers the model, and for how
// many turns. An environment is a row here and a file beside this one: X(name, name in options).
#pragma once

#include <array>
#include <cstdint>

#include "base/text/fields.h"

#define UCAS_ENVIRONMENTS(X) X(calculator, "calculator")

namespace ucas {

#define UCAS_ENVIRONMENT_KIND(kind, name) kind,
enum class EnvironmentKind : uint8_t { none, UCAS_ENVIRONMENTS(UCAS_ENVIRONMENT_KIND) };
#undef UCAS_ENVIRONMENT_KIND

#define UCAS_ENVIRONMENT_NAME(kind, name) name,
constexpr auto names(EnvironmentKind) {
  return std::to_array<const char*>({"none", UCAS_ENVIRONMENTS(UCAS_ENVIRONMENT_NAME)});
}
#undef UCAS_ENVIRONMENT_NAME

struct EnvironmentConfig {
  EnvironmentKind kind = EnvironmentKind::none;
  int64_t max_turns = 4;
  void fields(Fields& f);
  bool some() const { return kind != EnvironmentKind::none; }
};

}  // namespace ucas
