// sums: a chain such as 7 + 5 - 3, of 2 + difficulty numbers of one digit; no result on the way is below 0.
#include "base/str.h"
#include "data/tasks/registry.h"

namespace ucas {

namespace {

constexpr QuestionForm kSumForms[] = {
    {Split::train, "What is {e}?"},   {Split::train, "Calculate {e}."}, {Split::train, "{e} = ?"},
    {Split::dev, "How much is {e}?"}, {Split::test, "Work out {e}."},   {Split::test, "What does {e} equal?"},
};

class Sums final : public TextTask {
 public:
  TextProblem draw(Split split, int64_t difficulty, Rng& rng) const override {
    const QuestionForm& form = form_of<QuestionForm>(kSumForms, split, rng);
    std::vector<int64_t> numbers = {between(1, 9, rng)};
    std::string expression = str(numbers[0]);
    int64_t value = numbers[0];
    while (static_cast<int64_t>(numbers.size()) < 2 + difficulty) {
      const int64_t next = between(1, 9, rng);
      const bool minus = rng.below(2) == 0 && next <= value;
      value += minus ? -next : next;
      numbers.push_back(next);
      expression += str(minus ? " - " : " + ", next);
    }
    const std::pair<std::string_view, std::string> values[] = {{"e", expression}};
    return {filled(form.text, values), str(value), in_order(numbers),
            str(expression, " = ", value, ". The answer is ", value, ".")};
  }
};

}  // namespace

std::unique_ptr<TextTask> make_sums_task() { return std::make_unique<Sums>(); }

}  // namespace ucas
