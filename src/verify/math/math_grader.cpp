#include <algorithm>
#include <unordered_map>

#include "base/str.h"
#include "verify/math/compare/compare.h"
#include "verify/math/read/parser.h"
#include "verify/registry.h"
#include "verify/text/text_graders.h"

namespace ucas::math {

namespace {

// How much an outcome says; of several alternatives the most specific verdict counts.
int weight(VerdictKind kind) {
  constexpr int kWeights[] = {3, 1, 0, 2};  // equal, unequal, unparseable, over budget
  return kWeights[static_cast<size_t>(kind)];
}

// The numbers of what wrong answers say.
class Classes {
 public:
  int32_t of(const std::string& text, int32_t next) {
    auto [place, is_new] = by_text_.emplace(text, -1);
    if (is_new) place->second = of(read_answer(text), next);
    return place->second;
  }

 private:
  int32_t of(ReadAnswer answer, int32_t next) {
    bool is_number = answer.form == ReadAnswer::Form::number;
    if (!is_number && answer.form != ReadAnswer::Form::text) return -1;
    std::string key = is_number ? str("number ", answer.number, answer.percent) : str("text ", answer.key);
    std::vector<Member>& bucket = buckets_[key];
    if (!bucket.empty()) return bucket.front().number;
    bucket.push_back({answer, next});
    // Other forms of the same: only against the first classes, and within one budget for the group.
    for (const Member& known : classes_) {
      bool both_plain =
          is_number && known.answer.form == ReadAnswer::Form::number && answer.percent == known.answer.percent;
      if (both_plain) continue;
      if (budget_.steps <= 0) break;
      if (compare_answers(known.answer, answer, budget_).kind == VerdictKind::equal) {
        return bucket.back().number = known.number;
      }
    }
    if (classes_.size() < kCompared) classes_.push_back(bucket.back());
    return next;
  }

  struct Member {
    ReadAnswer answer;
    int32_t number;
  };
  static constexpr size_t kCompared = 64;
  std::unordered_map<std::string, int32_t> by_text_;
  std::unordered_map<std::string, std::vector<Member>> buckets_;
  std::vector<Member> classes_;
  Budget budget_{5'000'000};
};

class MathGrader final : public Grader {
 public:
  explicit MathGrader(Extract extract) : extract_(extract) {}

  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    std::vector<Verdict> verdicts;
    verdicts.reserve(answers.size());
    // The answers of one group come one after another with the same gold, which is read once.
    const std::vector<std::string>* read = nullptr;
    bool read_as_response = false;
    std::vector<ReadAnswer> gold;
    for (const Answer& answer : answers) {
      if (answer.gold != read || read == nullptr || answer.math.gold_is_response != read_as_response) {
        read = answer.gold;
        read_as_response = answer.math.gold_is_response;
        gold.clear();
        if (read != nullptr) {
          for (const std::string& text : *read) gold.push_back(read_answer(gold_text(text, read_as_response)));
        }
      }
      verdicts.push_back(answer.math.letter ? grade_letter(answer)
                                            : grade_one(answer, answer.extract.value_or(extract_), gold));
    }
    return verdicts;
  }

  void classify(std::span<Verdict> group) const override {
    Classes classes;
    number_classes(group, [&](const std::string& answer, int32_t next) { return classes.of(answer, next); });
  }

 private:
  static std::string_view gold_text(std::string_view text, bool is_response) {
    if (!is_response) return text;
    Extracted extracted = extract_answer(text, Extract::lenient);
    return extracted.found ? extracted.answer : text;
  }

  static Verdict grade_one(const Answer& graded, Extract extract, const std::vector<ReadAnswer>& gold) {
    Verdict verdict;
    Extracted extracted = extract_answer(graded.response, extract);
    if (!extracted.found) {
      verdict.reason = extracted.how;
      return verdict;
    }
    Budget budget;  // one for all alternatives
    verdict = compare_with_gold(graded, extracted.answer, gold, budget);
    if (extract != Extract::lenient || verdict.kind == VerdictKind::equal) return verdict;
    for (const ReadAnswer& alternative : gold) {  // its parts in boxes of their own
      auto joined = joined_boxes(without_thoughts(graded.response), alternative.parts());
      if (!joined) continue;
      Verdict whole = compare_with_gold(graded, *joined, {&alternative, 1}, budget);
      if (whole.kind == VerdictKind::equal) return whole;
    }
    return verdict;
  }

  static Verdict compare_with_gold(const Answer& graded, std::string_view text, std::span<const ReadAnswer> gold,
                                   Budget& budget) {
    Verdict verdict;
    verdict.answer = text.substr(0, kAnswerLimit);
    verdict.reason = "the gold answer is empty";
    ReadAnswer answer = read_answer(text);
    for (const ReadAnswer& alternative : gold) {
      Comparison comparison = compare_answers(alternative, answer, budget, graded.math);
      if (&alternative != &gold.front() && weight(comparison.kind) <= weight(verdict.kind)) continue;
      verdict.decide(comparison.kind, std::move(comparison.reason));
      if (verdict.kind == VerdictKind::equal) break;
    }
    return verdict;
  }

  Extract extract_;
};

}  // namespace

}  // namespace ucas::math

namespace ucas {

std::unique_ptr<Grader> make_math_grader(const GraderSetup& setup) {
  return std::make_unique<math::MathGrader>(setup.extract);
}

}  // namespace ucas
