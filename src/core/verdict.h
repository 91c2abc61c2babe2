// What a grader says of one answer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ucas {

// The stored names are those of mathematics; for any grader they mean right, wrong, nothing that could be read, and
// too costly to grade.
enum class VerdictKind : uint8_t { equal, unequal, unparseable, over_budget };

inline const char* name_of(VerdictKind kind) {
  constexpr const char* names[] = {"equal", "unequal", "unparseable", "over_budget"};
  return names[static_cast<int>(kind)];
}

// A response cut at the length limit: graded as it is, wrong, or graded and counted in its group but left out of the
// loss.
enum class Truncated { grade, wrong, mask };
constexpr std::array<const char*, 3> names(Truncated) { return {"grade", "wrong", "mask"}; }
constexpr size_t kTruncatedGraded = 2;  // what an evaluation has: it has no loss

struct Verdict {
  VerdictKind kind = VerdictKind::unparseable;
  std::string answer;         // what was extracted from the response, "" if nothing
  std::string reason;         // one phrase for people
  int32_t answer_class = -1;  // equal answers of one group share a class; -1: not grouped or unparseable
  float score = 0;            // share of what a right answer is paid: 1 where it is right, and between for parts of it

  // All or nothing: the score follows from the kind.
  void decide(VerdictKind decided, std::string why) {
    kind = decided;
    reason = std::move(why);
    score = decided == VerdictKind::equal ? 1.0f : 0.0f;
  }
};

inline std::optional<VerdictKind> verdict_named(std::string_view name) {
  for (auto kind : {VerdictKind::equal, VerdictKind::unequal, VerdictKind::unparseable, VerdictKind::over_budget}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace ucas
