#include "verify/text/letter.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "verify/math/read/extract.h"
#include "verify/registry.h"

namespace ucas {

namespace {

bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 || c == '\''; }

std::optional<char> first_letter(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c < 'A' || c > 'Z') continue;
    if (i > 0 && is_word_byte(text[i - 1])) continue;
    if (i + 1 < text.size() && is_word_byte(text[i + 1])) continue;
    bool before_word =
        i + 2 < text.size() && text[i + 1] == ' ' && std::islower(static_cast<unsigned char>(text[i + 2]));
    if ((c == 'I' || c == 'A') && before_word) continue;
    return c;
  }
  return std::nullopt;
}

class LetterGrader final : public Grader {
 public:
  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    std::vector<Verdict> verdicts;
    for (const Answer& answer : answers) verdicts.push_back(grade_letter(answer));
    return verdicts;
  }

  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> numbers;
    number_classes(
        group, [&](const std::string& letter, int32_t next) { return numbers.emplace(letter, next).first->second; });
  }
};

}  // namespace

std::optional<char> choice_letter(std::string_view text) {
  if (const math::Extracted box = math::extract_answer(text, Extract::strict); box.found) {
    if (auto letter = first_letter(box.answer)) return letter;
  }
  constexpr std::string_view kWord = "nswer";
  if (size_t at = text.rfind(kWord); at != std::string_view::npos) {
    if (auto letter = first_letter(text.substr(at + kWord.size()))) return letter;
  }
  return first_letter(text);
}

Verdict grade_letter(const Answer& answer) {
  Verdict verdict;
  size_t from = answer.response.size() - std::min(answer.response.size(), kResponseLimit);
  auto letter = choice_letter(answer.response.substr(from));
  verdict.reason = "no choice letter in the response";
  if (!letter || answer.gold == nullptr) return verdict;
  verdict.answer = std::string(1, *letter);
  verdict.reason = "no choice letter in the gold answer";
  for (const std::string& gold : *answer.gold) {
    auto expected = choice_letter(gold);
    if (!expected) continue;
    bool same = *expected == *letter;
    verdict.decide(same ? VerdictKind::equal : VerdictKind::unequal, same ? "the same letter" : "another letter");
    if (same) break;
  }
  return verdict;
}

std::unique_ptr<Grader> make_letter_grader(const GraderSetup&) { return std::make_unique<LetterGrader>(); }
std::unique_ptr<Grader> make_choice_grader(const GraderSetup&) { return std::make_unique<LetterGrader>(); }

}  // namespace ucas
