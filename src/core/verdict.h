// What a grader says of one answer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ucas {

// What a model is asked, and what counts as right. Made by data/problems, read by train and evaluate.

// Of a conversation: "user" or "assistant".
struct Turn {
  std::string role, content;
};

struct Problem {
  std::string id;                    // from the file, or "FILE-STEM/LINE"
  std::string source;                // data_source of the verl schema, else the file's stem; metrics are kept by source
  std::string subject;               // a finer division of the source, where the data has one
  std::string text;                  // the question, before any template
  std::string system;                // system message of a verl prompt[], if any
  std::vector<std::string> gold;     // alternatives, any one counts; empty only where no right answer is asked for
  std::vector<std::string> choices;  // of a multiple-choice question, A first; gold is then the letter
  std::vector<Turn> earlier;         // of a conversation whose last turn is `text`
};

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
  float score = 0;            // share of a right answer's reward: 1 where it is right, and between for parts of it

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
