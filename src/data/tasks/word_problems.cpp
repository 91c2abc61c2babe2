// word-problems: a sentence or two with two or three numbers (word_problems.txt: split | what is asked for | text, with
// {n} and {m} names, {t} things, {a}, {b}, {c} numbers). Difficulty 1: one step, numbers up to 15, plus and minus;
// 2: numbers up to 50, and boxes of equally many; 3: two steps, numbers up to 15; 4: two steps, larger numbers.
#include <algorithm>

#include "base/files/file.h"
#include "base/str.h"
#include "data/tasks/task.h"

namespace ucas {

namespace {

struct WordForm {
  Split split = Split::train;
  std::string asked, text;  // asked: "a + b - c"

  bool with_product() const { return asked.find('*') != std::string::npos; }
  bool of_two_steps() const { return asked.size() > std::string_view("a + b").size(); }
  bool fits(int64_t difficulty) const {
    if (of_two_steps() != (difficulty >= 3)) return false;
    return difficulty % 2 == 0 || !with_product();
  }
};

const std::vector<WordForm>& word_forms() {
  static const std::vector<WordForm> forms = [] {
    std::vector<WordForm> read;
    for (const std::string& line : split(std::string(*embedded("data/tasks/word_problems.txt")), '\n')) {
      if (line.empty()) continue;
      const size_t first = line.find(" | "), second = line.find(" | ", first + 3);
      const std::string of = line.substr(0, first);
      read.push_back({of == "train" ? Split::train
                      : of == "dev" ? Split::dev
                                    : Split::test,
                      line.substr(first + 3, second - first - 3), line.substr(second + 3)});
    }
    return read;
  }();
  return forms;
}

constexpr const char* kPeople[] = {"Tom", "Anna", "Ben", "Lucy", "Sam",  "Mia",  "Jack", "Emma",
                                   "Leo", "Nora", "Max", "Ella", "Paul", "Rosa", "Finn", "Kate"};
constexpr const char* kThings[] = {"apples", "pencils", "marbles", "stickers", "books",
                                   "coins",  "cards",   "shells",  "balloons", "cookies"};

// "a + b - c" with its numbers, and its value: from left to right, as a multiplication comes first.
struct Steps {
  std::string text;
  int64_t value = 0;
};
Steps steps_of(const std::string& asked, const int64_t (&numbers)[3]) {
  Steps steps;
  char sign = '+';
  for (const char c : asked) {
    if (c < 'a') {
      steps.text += c;
      if (c != ' ') sign = c;
      continue;
    }
    const int64_t number = numbers[c - 'a'];
    steps.text += str(number);
    steps.value = sign == '+' ? steps.value + number : sign == '-' ? steps.value - number : steps.value * number;
  }
  return steps;
}

}  // namespace

TextProblem draw_word_problem(Split split, int64_t difficulty, Rng& rng) {
  const bool large = difficulty % 2 == 0;
  while (true) {
    const WordForm& form = form_of<WordForm>(word_forms(), split, rng);
    if (!form.fits(difficulty)) continue;
    const bool product = form.with_product();
    const int64_t a = product ? between(2, 9, rng) : between(2, large ? 50 : 15, rng);
    const int64_t b = product ? between(2, 9, rng) : between(2, large ? 40 : 9, rng);
    const int64_t c = between(2, large ? 20 : 9, rng);
    const Steps steps = steps_of(form.asked, {a, b, c});
    if (steps.value < 1) continue;                                // nothing is taken away that is not there
    if (form.asked == "a - b + c" && (b > a || c > b)) continue;  // not more back than was given
    const int64_t n = rng.below(std::size(kPeople)), m = rng.below(std::size(kPeople));
    if (m == n) continue;
    const std::pair<std::string_view, std::string> values[] = {
        {"n", kPeople[n]}, {"m", kPeople[m]}, {"t", kThings[rng.below(std::size(kThings))]},
        {"a", str(a)},     {"b", str(b)},     {"c", str(c)}};
    const bool three = form.asked.find('c') != std::string::npos;
    const std::string answer = str(steps.value);
    return {filled(form.text, values), answer, in_order(three ? std::vector{a, b, c} : std::vector{a, b}),
            str(steps.text, " = ", answer, ". The answer is ", answer, ".")};
  }
}

// sums: a chain such as 7 + 5 - 3, of 2 + difficulty numbers of one digit; no result on the way is below 0.
constexpr QuestionForm kSumForms[] = {
    {Split::train, "What is {e}?"},   {Split::train, "Calculate {e}."}, {Split::train, "{e} = ?"},
    {Split::dev, "How much is {e}?"}, {Split::test, "Work out {e}."},   {Split::test, "What does {e} equal?"},
};

TextProblem draw_sum(Split split, int64_t difficulty, Rng& rng) {
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

}  // namespace ucas
