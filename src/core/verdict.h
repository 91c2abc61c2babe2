// What the verifier says of one answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ucas {

enum class VerdictKind : uint8_t { equal, unequal, unparseable, over_budget };

constexpr const char* kVerdictNames[] = {"equal", "unequal", "unparseable", "over_budget"};
inline const char* name_of(VerdictKind kind) { return kVerdictNames[static_cast<int>(kind)]; }
inline std::optional<VerdictKind> verdict_named(std::string_view name) {
  for (int kind = 0; kind < 4; ++kind) {
    if (name == kVerdictNames[kind]) return static_cast<VerdictKind>(kind);
  }
  return std::nullopt;
}

struct Verdict {
  VerdictKind kind = VerdictKind::unparseable;
  std::string answer;         // what was extracted from the response, "" if nothing
  std::string reason;         // one phrase for people
  int32_t answer_class = -1;  // equal answers of one group share a class; -1: not grouped or unparseable
};

}  // namespace ucas
