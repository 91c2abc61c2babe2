// countdown: an expression with the value of the target that uses each given number exactly once; graded by its value
// (verify/text/countdown.cpp), so any such expression is right. Difficulty 1: two numbers, plus, minus and times; 2:
// three numbers, plus and minus; 3: three numbers, all four operations; 4: four numbers. Every target can be reached:
// it is the value of an expression that was made first.
#include "base/str.h"
#include "data/tasks/task.h"

namespace ucas {

namespace {

constexpr QuestionForm kCountdownForms[] = {
    {Split::train,
     "Make {t} from the numbers {n}. Use each number exactly once, with {o} and parentheses. Give the expression."},
    {Split::train, "Use {n}, each exactly once, and {o} to write an expression that equals {t}."},
    {Split::train,
     "Which expression of the numbers {n} equals {t}? Every number must be used once; allowed are {o} and "
     "parentheses."},
    {Split::dev, "Combine {n} with {o} so that the result is {t}. No number may be left out or used twice."},
    {Split::test,
     "Find an arithmetic expression with the value {t} in which each of the numbers {n} stands exactly once. Allowed: "
     "{o}, parentheses."},
    {Split::test, "The numbers are {n}. The target is {t}. Reach it with {o}, using every number once."},
};

// "3 and 5", "3, 5 and 7"
std::string listed(const std::vector<int64_t>& numbers) {
  std::string text = str(numbers[0]);
  for (size_t i = 1; i < numbers.size(); ++i) text += str(i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
  return text;
}

struct Part {
  int64_t value;
  std::string text;
  bool compound = false;
};

Part take(std::vector<Part>& parts, Rng& rng) {
  const auto at = parts.begin() + rng.below(static_cast<int64_t>(parts.size()));
  Part part = *at;
  parts.erase(at);
  return part;
}

Part joined(const Part& a, char symbol, const Part& b) {
  const auto side = [](const Part& part) { return part.compound ? str("(", part.text, ")") : part.text; };
  const int64_t value = symbol == '+'   ? a.value + b.value
                        : symbol == '-' ? a.value - b.value
                        : symbol == '*' ? a.value * b.value
                                        : a.value / b.value;
  return {value, str(side(a), " ", symbol, " ", side(b)), true};
}

}  // namespace

TextProblem draw_countdown(Split split, int64_t difficulty, Rng& rng) {
  const QuestionForm& form = form_of<QuestionForm>(kCountdownForms, split, rng);
  const int64_t count = difficulty == 1 ? 2 : difficulty == 4 ? 4 : 3, largest = difficulty == 1 ? 30 : 20;
  const std::string symbols = difficulty == 1 ? "+-*" : difficulty == 2 ? "+-" : "+-*/";
  while (true) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(between(1, largest, rng));
    // Two of the parts become one until one is left.
    std::vector<Part> parts;
    for (const int64_t number : numbers) parts.push_back({number, str(number)});
    bool whole = true;
    while (parts.size() > 1 && whole) {
      const Part a = take(parts, rng), b = take(parts, rng);
      const char symbol = symbols[static_cast<size_t>(rng.below(static_cast<int64_t>(symbols.size())))];
      whole = symbol != '/' || (b.value != 0 && a.value % b.value == 0);
      if (whole) parts.push_back(joined(a, symbol, b));
    }
    const Part& made = parts[0];
    if (!whole || made.value < 1 || made.value > 200) continue;
    std::vector<std::string> allowed;
    for (const char symbol : symbols) allowed.emplace_back(1, symbol);
    std::string gold = str(made.value, ":");
    for (const int64_t number : numbers) gold += str(" ", number);
    const std::pair<std::string_view, std::string> places[] = {
        {"t", str(made.value)}, {"n", listed(numbers)}, {"o", join(allowed, " ")}};
    return {filled(form.text, places), gold, in_order(numbers), str(made.text, " = ", made.value)};
  }
}

}  // namespace ucas
