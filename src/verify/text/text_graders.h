// What the small graders share, and the letter of a multiple-choice answer, for rows that ask for letters only.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "verify/grader.h"

namespace ucas {

// Of graders that see one answer at a time.
class EachAlone : public Grader {
 public:
  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    std::vector<Verdict> verdicts;
    verdicts.reserve(answers.size());
    for (const Answer& answer : answers) verdicts.push_back(grade_one(answer));
    return verdicts;
  }

 private:
  virtual Verdict grade_one(const Answer& answer) const = 0;
};

// The first lone capital letter A to Z in the last \boxed{}, else after the last "answer", else in the whole text; "I"
// and an "A" before a word in lower case are no letters but words. Linear.
std::optional<char> choice_letter(std::string_view text);

// The letter of the response against those of the gold answers.
Verdict grade_letter(const Answer& answer);

}  // namespace ucas
