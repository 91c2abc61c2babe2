#include "verify/verifier.h"

#include <algorithm>
#include <unordered_map>

#include "base/str.h"
#include "verify/choice.h"
#include "verify/math/boxes.h"
#include "verify/math/compare.h"
#include "verify/math/extract.h"

namespace ucas {

namespace {

// How much an outcome says; of several alternatives the most telling verdict stands.
int weight(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::equal:
      return 3;
    case VerdictKind::over_budget:
      return 2;
    case VerdictKind::unequal:
      return 1;
    case VerdictKind::unparseable:
      return 0;
  }
  return 0;
}

// Equal answers share a number, in order of first appearance.
class Classes {
 public:
  int32_t right() {  // all that counts as right is one class, however it is written
    if (right_ < 0) right_ = next_++;
    return right_;
  }

  int32_t of(const std::string& text) {
    if (auto known = by_text_.find(text); known != by_text_.end()) return known->second;
    return by_text_[text] = of(read_answer(text));
  }

 private:
  int32_t of(MathAnswer answer) {
    bool is_number = answer.form == MathAnswer::Form::number;
    if (!is_number && answer.form != MathAnswer::Form::text) return -1;
    std::string key =
        is_number ? str("number ", fingerprint(answer.number), " ", answer.unit) : str("text ", answer.key);
    std::vector<Member>& bucket = buckets_[key];
    for (const Member& member : bucket) {
      Budget budget;
      if (!is_number || equal_numbers(member.answer.number, answer.number, budget).value_or(false))
        return member.number;
    }
    bucket.push_back({answer, next_});
    // Other forms of the same: only against the first classes, and within one budget for the group.
    for (const Member& known : classes_) {
      bool both_plain = is_number && known.answer.form == MathAnswer::Form::number && answer.unit == known.answer.unit;
      if (both_plain) continue;
      if (budget_.steps <= 0) break;
      if (compare_answers(known.answer, answer, budget_).kind == VerdictKind::equal) {
        return bucket.back().number = known.number;
      }
    }
    if (classes_.size() < kCompared) classes_.push_back(bucket.back());
    return next_++;
  }

  struct Member {
    MathAnswer answer;
    int32_t number;
  };
  static constexpr size_t kCompared = 64;
  std::unordered_map<std::string, int32_t> by_text_;
  std::unordered_map<std::string, std::vector<Member>> buckets_;
  std::vector<Member> classes_;
  Budget budget_{5'000'000};
  int32_t next_ = 0, right_ = -1;
};

class MathVerifier final : public Verifier {
 public:
  explicit MathVerifier(Extract extract) : extract_(extract) {}

  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    std::vector<Verdict> verdicts;
    verdicts.reserve(answers.size());
    // The answers of one group come one after another with the same gold, which is read once.
    const std::vector<std::string>* read = nullptr;
    bool read_as_response = false;
    std::vector<MathAnswer> gold;
    for (const Answer& answer : answers) {
      if (answer.gold != read || read == nullptr || answer.gold_is_response != read_as_response) {
        read = answer.gold;
        read_as_response = answer.gold_is_response;
        gold.clear();
        if (read != nullptr) {
          for (const std::string& text : *read) gold.push_back(read_answer(gold_text(text, read_as_response)));
        }
      }
      verdicts.push_back(answer.letter ? grade_letter(answer)
                                       : grade_one(answer, answer.extract.value_or(extract_), gold));
    }
    return verdicts;
  }

  void classify(std::span<Verdict> group) const override {
    Classes classes;
    for (Verdict& verdict : group) {
      verdict.answer_class = -1;
      if (verdict.answer.empty() || verdict.kind == VerdictKind::over_budget) continue;
      verdict.answer_class = verdict.kind == VerdictKind::equal ? classes.right() : classes.of(verdict.answer);
    }
  }

 private:
  static std::string_view gold_text(std::string_view text, bool is_response) {
    if (!is_response) return text;
    Extracted extracted = extract_answer(text, Extract::lenient);
    return extracted.found ? extracted.answer : text;
  }

  static Verdict grade_letter(const Answer& answer) {
    Verdict verdict;
    auto letter = choice_letter(
        answer.response.substr(answer.response.size() - std::min(answer.response.size(), kResponseLimit)));
    verdict.reason = "no choice letter in the response";
    if (!letter || answer.gold == nullptr) return verdict;
    verdict.answer = std::string(1, *letter);
    verdict.reason = "no choice letter in the gold answer";
    for (const std::string& gold : *answer.gold) {
      auto expected = choice_letter(gold);
      if (!expected) continue;
      verdict.kind = *expected == *letter ? VerdictKind::equal : VerdictKind::unequal;
      verdict.reason = *expected == *letter ? "the same letter" : "another letter";
      if (*expected == *letter) break;
    }
    return verdict;
  }

  static Verdict grade_one(const Answer& graded, Extract extract, const std::vector<MathAnswer>& gold) {
    Verdict verdict;
    Extracted extracted = extract_answer(graded.response, extract);
    if (!extracted.found) {
      verdict.reason = extracted.how;
      return verdict;
    }
    Budget budget;  // one for all alternatives
    verdict = compare_with_gold(graded, extracted.answer, gold, budget);
    if (extract != Extract::lenient || verdict.kind == VerdictKind::equal) return verdict;
    for (const MathAnswer& alternative : gold) {  // its parts in boxes of their own
      auto joined = joined_boxes(graded.response, alternative.parts());
      if (!joined) continue;
      Verdict whole = compare_with_gold(graded, *joined, {&alternative, 1}, budget);
      if (whole.kind == VerdictKind::equal) return whole;
    }
    return verdict;
  }

  static Verdict compare_with_gold(const Answer& graded, std::string_view text, std::span<const MathAnswer> gold,
                                   Budget& budget) {
    Verdict verdict;
    verdict.answer = text.substr(0, kAnswerLimit);
    verdict.reason = "the gold answer is empty";
    MathAnswer answer = read_answer(text);
    for (const MathAnswer& alternative : gold) {
      AnswerComparison comparison =
          compare_answers(alternative, answer, budget, {graded.precision, graded.relation_for_set});
      if (&alternative != &gold.front() && weight(comparison.kind) <= weight(verdict.kind)) continue;
      verdict.kind = comparison.kind;
      verdict.reason = std::move(comparison.reason);
      if (verdict.kind == VerdictKind::equal) break;
    }
    return verdict;
  }

  Extract extract_;
};

}  // namespace

std::unique_ptr<Verifier> make_math_verifier(Extract extract) { return std::make_unique<MathVerifier>(extract); }

}  // namespace ucas
