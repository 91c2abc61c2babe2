// Grades responses: text in, verdict out. The reward of RLVR is this and nothing else.
// Fed by rollout texts (train/collect, evaluate) and by `ucas verify`. Only the response is read, never the prompt.
// Threads: grade() may be called from any thread; implementations hold no mutable state.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict.h"

namespace ucas {

// last box only | box, else the usual phrases | last box inside the last <answer> | the whole text
enum class Extract { strict, lenient, answer_tag, bare };
constexpr std::array<const char*, 4> names(Extract) { return {"strict", "lenient", "answer_tag", "bare"}; }
constexpr size_t kExtractsOfResponses = 3;  // what options offer: a whole response is never an answer

struct Answer {
  std::string_view response;             // as the model wrote it
  const std::vector<std::string>* gold;  // alternatives, any one counts
  // What follows is for test suites of other graders; training leaves it alone.
  std::optional<Extract> extract = {};  // instead of the verifier's own
  bool gold_is_response = false;        // the answer is looked for in the gold, too (lenient)
  bool letter = false;                  // the answer is a choice letter, not mathematics
  bool relation_for_set = true;         // an inequality may be given for a gold set or interval
  int32_t precision = -1;               // decimals of a decimal fraction that must agree; -1: as many as the gold shows
};

class Verifier {
 public:
  virtual ~Verifier() = default;
  // One verdict per answer, in order. Never throws on any response; an empty gold is a verdict, too.
  virtual std::vector<Verdict> grade(std::span<const Answer> answers) const = 0;
  // Sets answer_class within one group: equal answers share a number, in order of first appearance.
  virtual void classify(std::span<Verdict> group) const = 0;
};

std::unique_ptr<Verifier> make_math_verifier(Extract extract = Extract::strict);

}  // namespace ucas
