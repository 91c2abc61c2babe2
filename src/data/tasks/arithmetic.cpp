// arithmetic: two numbers. Difficulty 1: up to 60, plus or minus one digit; 2: two digits and two digits without a
// carry; 3: any two digits; 4: three digits and two, or two digits times one.
#include "base/str.h"
#include "data/tasks/registry.h"

namespace ucas {

namespace {

constexpr QuestionForm kArithmeticForms[] = {
    {Split::train, "What is {e}?"},        {Split::train, "Calculate {e}."},       {Split::train, "{e} = ?"},
    {Split::dev, "How much is {e}?"},      {Split::dev, "Give the value of {e}."}, {Split::test, "Work out {e}."},
    {Split::test, "What does {e} equal?"},
};

bool carries(int64_t a, int64_t b) { return a % 10 + b % 10 >= 10; }
bool borrows(int64_t a, int64_t b) { return a % 10 < b % 10; }

class Arithmetic final : public TextTask {
 public:
  TextProblem draw(Split split, int64_t difficulty, Rng& rng) const override {
    const QuestionForm& form = form_of<QuestionForm>(kArithmeticForms, split, rng);
    while (true) {
      const auto symbol = "+-*"[rng.below(difficulty == 4 ? 3 : 2)];
      int64_t a = 0, b = 0;
      if (difficulty == 1) {
        a = between(2, 60, rng), b = between(1, 9, rng);
      } else if (symbol == '*') {
        a = between(11, 99, rng), b = between(2, 9, rng);
      } else {
        a = difficulty == 4 ? between(100, 999, rng) : between(10, 99, rng), b = between(10, 99, rng);
      }
      if (symbol == '-' && a < b) continue;
      if (difficulty == 2 && (symbol == '+' ? carries(a, b) : borrows(a, b))) continue;
      const int64_t answer = symbol == '+' ? a + b : symbol == '-' ? a - b : a * b;
      const std::pair<std::string_view, std::string> values[] = {{"e", str(a, " ", symbol, " ", b)}};
      return {filled(form.text, values), str(answer), in_order({a, b}),
              str(values[0].second, " = ", answer, ". The answer is ", answer, ".")};
    }
  }
};

}  // namespace

std::unique_ptr<TextTask> make_arithmetic_task() { return std::make_unique<Arithmetic>(); }

}  // namespace ucas
