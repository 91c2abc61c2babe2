#include "verify/text/text_graders.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/str.h"
#include "verify/math/read/parser.h"
#include "verify/registry.h"

namespace ucas {

namespace {

bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 || c == '\''; }

// kNoChoice: letters are there, but denied ("not B") or offered together ("A or B").
constexpr char kNoChoice = '\0';

std::optional<char> first_letter(std::string_view text) {
  auto lone = [&](size_t i) {
    bool letter = i < text.size() && text[i] >= 'A' && text[i] <= 'Z';
    return letter && (i == 0 || !is_word_byte(text[i - 1])) && (i + 1 >= text.size() || !is_word_byte(text[i + 1]));
  };
  std::optional<char> none;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!lone(i)) continue;
    const std::string_view rest = text.substr(i + 1), before = trim(text.substr(0, i));
    const size_t next = rest.starts_with(" or ") ? 5 : rest.starts_with(" and ") ? 6 : 0;
    if (next > 0 && lone(i + next)) return kNoChoice;
    bool before_word = rest.size() > 1 && rest[0] == ' ' && std::islower(static_cast<unsigned char>(rest[1]));
    if ((text[i] == 'I' || text[i] == 'A') && before_word) continue;
    auto denies = [&](std::string_view word) { return before.ends_with(word); };
    constexpr std::string_view kDenials[] = {"not", "n't", "except",  "but",      "neither",
                                             "nor", "Not", "Neither", "excluding"};
    if (!std::any_of(std::begin(kDenials), std::end(kDenials), denies)) return text[i];
    none = kNoChoice;
  }
  return none;
}

std::optional<char> chosen(std::string_view text) {
  text = math::without_thoughts(text);
  if (const math::Extracted box = math::extract_answer(text, Extract::strict); box.found) {
    if (auto letter = first_letter(box.answer)) return letter;
  }
  constexpr std::string_view kWord = "nswer";
  if (size_t at = text.rfind(kWord); at != std::string_view::npos) {
    if (auto letter = first_letter(text.substr(at + kWord.size()))) return letter;
  }
  return first_letter(text);
}

class LetterGrader final : public EachAlone {
 public:
  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> numbers;
    number_classes(
        group, [&](const std::string& letter, int32_t next) { return numbers.emplace(letter, next).first->second; });
  }

 private:
  Verdict grade_one(const Answer& answer) const override { return grade_letter(answer); }
};

}  // namespace

std::optional<char> choice_letter(std::string_view text) {
  const std::optional<char> letter = chosen(text);
  return letter == kNoChoice ? std::nullopt : letter;
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
