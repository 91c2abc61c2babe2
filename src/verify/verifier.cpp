#include "verify/verifier.h"

#include <unordered_map>

#include "base/str.h"
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
      verdicts.push_back(grade_one(answer.response, answer.extract.value_or(extract_), gold));
    }
    return verdicts;
  }

  void classify(std::span<Verdict> group) const override {
    // Buckets by fingerprint or text, then exact comparison inside a bucket.
    struct Member {
      MathAnswer answer;
      int32_t number;
    };
    std::unordered_map<std::string, std::vector<Member>> buckets;
    int32_t next = 0, right = -1;
    for (Verdict& verdict : group) {
      verdict.answer_class = -1;
      if (verdict.answer.empty() || verdict.kind == VerdictKind::over_budget) continue;
      if (verdict.kind == VerdictKind::equal) {  // all that counts as right is one class, however it is written
        if (right < 0) right = next++;
        verdict.answer_class = right;
        continue;
      }
      MathAnswer answer = read_answer(verdict.answer);
      if (answer.form != MathAnswer::Form::number && answer.form != MathAnswer::Form::text) continue;
      bool is_number = answer.form == MathAnswer::Form::number;
      std::vector<Member>& bucket =
          buckets[is_number ? str("number ", fingerprint(answer.number)) : str("text ", answer.key)];
      for (const Member& member : bucket) {
        Budget budget;
        if (!is_number || equal_numbers(member.answer.number, answer.number, budget).value_or(false)) {
          verdict.answer_class = member.number;
          break;
        }
      }
      if (verdict.answer_class >= 0) continue;
      verdict.answer_class = next;
      bucket.push_back({std::move(answer), next++});
    }
  }

 private:
  static std::string_view gold_text(std::string_view text, bool is_response) {
    if (!is_response) return text;
    Extracted extracted = extract_answer(text, Extract::lenient);
    return extracted.found ? extracted.answer : text;
  }

  static Verdict grade_one(std::string_view response, Extract extract, const std::vector<MathAnswer>& gold) {
    Verdict verdict;
    Extracted extracted = extract_answer(response, extract);
    if (!extracted.found) {
      verdict.reason = extracted.how;
      return verdict;
    }
    verdict.answer = extracted.answer.substr(0, kAnswerLimit);
    verdict.reason = "the gold answer is empty";
    MathAnswer answer = read_answer(extracted.answer);
    Budget budget;  // one for all alternatives
    for (const MathAnswer& alternative : gold) {
      Comparison comparison = compare_answers(alternative, answer, budget);
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
