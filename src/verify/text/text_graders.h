// Other graders that answers are commonly paid by, for comparison (`ucas verify --grader`, `--audit`). Each is written
// from its documented behaviour, faults included; training uses none of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/grader.h"

namespace ucas {

// Of graders that see one answer at a time.
class EachAlone : public Grader {
 public:
  std::vector<Verdict> grade(std::span<const Answer> answers) const override;

 private:
  virtual Verdict grade_one(const Answer& answer) const = 0;
};

// released_train  the reward of the released training code, the grader of the MATH data set: the last box, two strings
//                 brought to one normal form, equality of bytes
// strict_numeric  the last box holds a plain number (digits, sign, one point, thousands separators), the same as gold's

// The normal form of released_train; nullopt where its documented behaviour is to fall back to the text as it is.
std::optional<std::string> released_normal_form(std::string_view answer);
// The normal form of strict_numeric: "-12.5"; nullopt: not a plain number.
std::optional<std::string> plain_number(std::string_view answer);

// The letter of a multiple-choice answer, for rows that ask for letters only.

// The first lone capital letter A to Z in the last \boxed{}, else after the last "answer", else in the whole text; "I"
// and an "A" before a word in lower case are no letters but words. Linear.
std::optional<char> choice_letter(std::string_view text);

// The letter of the response against those of the gold answers.
Verdict grade_letter(const Answer& answer);

}  // namespace ucas
