// Grades responses: text in, verdict out. The reward of RLVR is this and nothing else.
// Fed by rollout texts (train/collect, evaluate) and by `ucas verify`. Only the response is read, never the prompt.
// Threads: any may call a Grader; implementations hold no mutable state.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal/log.h"
#include "core/verdict.h"

namespace ucas {

constexpr size_t kResponseLimit = size_t{1} << 20;  // bytes of a response that are looked at, from its end
constexpr size_t kAnswerLimit = size_t{8} << 10;    // bytes of one answer

// last box only | box, else the usual phrases | last box inside the last <answer> | the whole text
enum class Extract { strict, lenient, answer_tag, bare };
constexpr std::array<const char*, 4> names(Extract) { return {"strict", "lenient", "answer_tag", "bare"}; }

// For test suites of other graders of mathematics; training leaves them alone.
struct MathOptions {
  bool gold_is_response = false;  // the answer is looked for in the gold, too (lenient)
  bool letter = false;            // the answer is a choice letter
  bool relation_for_set = true;   // an inequality may be given for a gold set or interval
  int32_t precision = -1;         // decimals of a decimal fraction that must agree; -1: as many as the gold shows
};

struct Answer {
  std::string_view response;             // as the model wrote it
  const std::vector<std::string>* gold;  // alternatives, any one counts
  std::optional<Extract> extract = {};   // instead of the grader's own
  MathOptions math = {};
};

class Grader {
 public:
  virtual ~Grader() = default;
  // One verdict per answer, in order. Never throws on any response; an empty gold is a verdict, too. A grader that
  // cannot do its work (Error(ErrorKind::sandbox)) says so: what it failed on is no wrong answer.
  virtual std::vector<Verdict> grade(std::span<const Answer> answers) const = 0;
  // Sets answer_class within one group: equal answers share a number, in order of first appearance.
  virtual void classify(std::span<Verdict> group) const = 0;
  // Before the first answer: Error for what this machine lacks, and for a right answer that cannot be read
  // ("data_line", beginning with `where`).
  virtual void prepare() const {}
  virtual void check_gold(const std::vector<std::string>& gold, const std::string& where) const {}
  // Whether a verdict takes a process, and the grader has threads of its own for them.
  virtual bool is_slow() const { return false; }
  // What else belongs to a verdict, for result files: the sandbox's tier. "" = nothing.
  virtual std::string circumstances() const { return ""; }
};

// For classify(): all that counts as right is one class, however it is written; `class_of` has the number of a wrong
// answer: an earlier one, `next` for a new one, -1 for none.
void number_classes(std::span<Verdict> group,
                    const std::function<int32_t(const std::string& answer, int32_t next)>& class_of);

// Answers that a grader gave up on, for the last line of the command (base/terminal/log.h).

inline void note_over_budget(std::span<const Verdict> verdicts) {
  count_warning(Warning::over_budget, std::ranges::count(verdicts, VerdictKind::over_budget, &Verdict::kind));
}

}  // namespace ucas
