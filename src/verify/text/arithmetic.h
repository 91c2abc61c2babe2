// Exact arithmetic of texts: + - * / and parentheses over whole numbers, by fractions; no powers, no integer division,
// no joined digits, no sign before a number. Fed by the countdown grader and by the calculator, an environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucas::arithmetic {

struct Fraction {
  int64_t above = 0, below = 1;  // below > 0, without common divisor
};

// Of at most nine digits and a sign.
std::optional<int64_t> whole_number(std::string_view text);
// The operator or parenthesis that begins at `at`, or 0; `size` is how long its text is. An x that belongs to no word
// multiplies.
char symbol_at(std::string_view text, size_t at, size_t& size);
// The text as digits and symbols alone; none if it has anything else. Blanks go, but those between two digits,
// which keep two numbers apart.
std::optional<std::string> symbols_of(std::string_view text);

// By recursive descent over symbols_of(), which it borrows. What fails says why.
class Evaluation {
 public:
  explicit Evaluation(std::string_view text) : text_(text) {}

  std::optional<Fraction> run();
  const char* problem() const { return problem_; }  // nullptr: none
  bool readable() const { return readable_; }       // it is an expression, though it has no value
  const std::vector<int64_t>& numbers() const { return numbers_; }
  int64_t operators() const { return operators_; }

 private:
  Fraction fail(const char* problem, bool readable = false);
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  Fraction reduced(__int128 above, __int128 below);
  Fraction combine(char symbol, const Fraction& a, const Fraction& b);
  Fraction sum(int depth);
  Fraction product(int depth);
  Fraction factor(int depth);

  std::string_view text_;
  size_t at_ = 0;
  const char* problem_ = nullptr;
  bool readable_ = false;
  std::vector<int64_t> numbers_;
  int64_t operators_ = 0;
};

}  // namespace ucas::arithmetic
