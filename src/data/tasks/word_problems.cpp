// word-problems: a sentence or two with two or three numbers. Difficulty 1: one step, numbers up to 15, plus and minus;
// 2: numbers up to 50, and boxes of equally many; 3: two steps, numbers up to 15; 4: two steps, larger numbers.
#include "base/str.h"
#include "data/tasks/registry.h"

namespace ucas {

namespace {

// What is asked for, of the numbers a, b and c.
enum class Asked { sum, difference, product, sum_less, difference_more, twice, less_both, product_less, product_more };

struct WordForm {
  Split split;
  Asked asked;
  const char* text;  // {n}, {m}: two names; {t}: things; {a}, {b}, {c}: numbers
};

constexpr Split kTrain = Split::train, kDev = Split::dev, kTest = Split::test;

constexpr WordForm kWordForms[] = {
    {kTrain, Asked::sum, "{n} has {a} {t} and buys {b} more. How many {t} does {n} have now?"},
    {kTrain, Asked::sum, "{n} has {a} {t} and {m} has {b} {t}. How many {t} do they have together?"},
    {kTrain, Asked::sum, "There are {a} {t} in a box. {n} puts {b} more {t} into it. How many {t} are in the box now?"},
    {kTrain, Asked::sum, "{n} had {a} {t}. Then {m} gave {n} {b} {t}. How many {t} does {n} have now?"},
    {kDev, Asked::sum,
     "{n} finds {a} {t} in the morning and {b} {t} in the afternoon. How many {t} does {n} find in all?"},
    {kTest, Asked::sum, "A shop sells {a} {t} on Monday and {b} {t} on Tuesday. How many {t} does it sell in total?"},
    {kTest, Asked::sum, "{n} already owns {a} {t} and gets {b} {t} as a present. How many {t} does {n} own now?"},

    {kTrain, Asked::difference, "{n} has {a} {t} and gives {b} of them away. How many {t} does {n} have left?"},
    {kTrain, Asked::difference, "{n} had {a} {t} and lost {b} of them. How many {t} does {n} have now?"},
    {kTrain, Asked::difference,
     "There are {a} {t} on a table. {n} takes {b} of them away. How many {t} are still there?"},
    {kTrain, Asked::difference, "{n} buys {a} {t} and gives {m} {b} of them. How many {t} does {n} keep?"},
    {kDev, Asked::difference, "{n} has {a} {t}. {b} of them break. How many {t} are whole?"},
    {kTest, Asked::difference, "A box holds {a} {t}. {n} takes out {b}. How many {t} remain in the box?"},
    {kTest, Asked::difference, "{n} starts the day with {a} {t} and sells {b} of them. How many {t} are not sold?"},

    {kTrain, Asked::product, "{n} has {a} boxes with {b} {t} in each box. How many {t} does {n} have?"},
    {kTrain, Asked::product, "{n} buys {b} {t} every day for {a} days. How many {t} does {n} buy?"},
    {kDev, Asked::product, "There are {a} children, and each of them has {b} {t}. How many {t} do they have together?"},
    {kTest, Asked::product, "{a} bags lie on a table. Each bag holds {b} {t}. How many {t} are in the bags?"},

    {kTrain, Asked::sum_less,
     "{n} has {a} {t}, buys {b} more and then gives {c} away. How many {t} does {n} have now?"},
    {kTrain, Asked::sum_less,
     "{n} has {a} {t} and {m} has {b} {t}. Together they lose {c} {t}. How many {t} do they have left?"},
    {kDev, Asked::sum_less,
     "{n} puts {a} {t} and then {b} {t} into a bag. Later {n} takes out {c}. How many {t} are in the bag?"},
    {kTest, Asked::sum_less,
     "A shop has {a} {t}. It gets {b} more and sells {c}. How many {t} does the shop have now?"},

    {kTrain, Asked::difference_more,
     "{n} had {a} {t}, lost {b} of them and found {c} others. How many {t} does {n} have now?"},
    {kDev, Asked::difference_more,
     "{n} has {a} {t}, gives {b} to {m} and gets {c} back. How many {t} does {n} have in the end?"},
    {kTest, Asked::difference_more,
     "There are {a} {t} in a box. {n} takes {b} out and puts {c} in. How many {t} are in the box now?"},

    {kTrain, Asked::less_both, "{n} has {a} {t}. {n} gives {b} to {m} and loses {c}. How many {t} does {n} have left?"},
    {kDev, Asked::less_both,
     "{n} buys {a} {t}. {b} of them break on Monday and {c} on Tuesday. How many {t} are whole?"},
    {kTest, Asked::less_both,
     "A shop has {a} {t}. It sells {b} in the morning and {c} in the afternoon. How many {t} are left?"},

    {kTrain, Asked::twice, "{n} has {a} {t}. {m} has {b} more {t} than {n}. How many {t} do they have together?"},
    {kTest, Asked::twice,
     "{n} found {a} {t} today. Yesterday {n} found {b} more than today. How many {t} did {n} find on both days?"},
    {kDev, Asked::twice, "There are {a} {t} in a bag and {b} more than that in a box. How many {t} are there in all?"},

    {kTrain, Asked::product_less,
     "{n} buys {a} boxes of {b} {t} and gives {c} {t} away. How many {t} does {n} have left?"},
    {kDev, Asked::product_less, "{a} children have {b} {t} each. They lose {c} {t}. How many {t} do they still have?"},
    {kTest, Asked::product_less, "{a} bags hold {b} {t} each. {n} takes out {c} {t}. How many {t} remain in the bags?"},

    {kTrain, Asked::product_more,
     "{n} has {c} {t} and buys {a} boxes with {b} {t} in each. How many {t} does {n} have now?"},
    {kDev, Asked::product_more,
     "{n} saves {b} {t} a day for {a} days and had {c} {t} before. How many {t} does {n} have?"},
    {kTest, Asked::product_more,
     "{a} bags hold {b} {t} each, and {c} more {t} lie beside them. How many {t} are there?"},
};

constexpr const char* kPeople[] = {"Tom", "Anna", "Ben", "Lucy", "Sam",  "Mia",  "Jack", "Emma",
                                   "Leo", "Nora", "Max", "Ella", "Paul", "Rosa", "Finn", "Kate"};
constexpr const char* kThings[] = {"apples", "pencils", "marbles", "stickers", "books",
                                   "coins",  "cards",   "shells",  "balloons", "cookies"};

bool with_product(Asked asked) {
  return asked == Asked::product || asked == Asked::product_less || asked == Asked::product_more;
}
bool of_two_steps(Asked asked) { return asked > Asked::product; }

// Has a question of this kind the difficulty?
bool fits(Asked asked, int64_t difficulty) {
  if (of_two_steps(asked) != (difficulty >= 3)) return false;
  return difficulty % 2 == 0 || !with_product(asked);
}

int64_t answer_of(Asked asked, int64_t a, int64_t b, int64_t c) {
  switch (asked) {
    case Asked::sum:
      return a + b;
    case Asked::difference:
      return a - b;
    case Asked::product:
      return a * b;
    case Asked::sum_less:
      return a + b - c;
    case Asked::difference_more:
      return a - b + c;
    case Asked::twice:
      return 2 * a + b;
    case Asked::less_both:
      return a - b - c;
    case Asked::product_less:
      return a * b - c;
    case Asked::product_more:
      return a * b + c;
  }
  return 0;
}

// How one gets there: "12 + 4".
std::string steps_of(Asked asked, int64_t a, int64_t b, int64_t c) {
  switch (asked) {
    case Asked::sum:
      return str(a, " + ", b);
    case Asked::difference:
      return str(a, " - ", b);
    case Asked::product:
      return str(a, " * ", b);
    case Asked::sum_less:
      return str(a, " + ", b, " - ", c);
    case Asked::difference_more:
      return str(a, " - ", b, " + ", c);
    case Asked::twice:
      return str(a, " + ", a, " + ", b);
    case Asked::less_both:
      return str(a, " - ", b, " - ", c);
    case Asked::product_less:
      return str(a, " * ", b, " - ", c);
    case Asked::product_more:
      return str(a, " * ", b, " + ", c);
  }
  return "";
}

// Nothing is taken away that is not there.
bool makes_sense(Asked asked, int64_t a, int64_t b, int64_t c) {
  if (asked == Asked::difference_more && b > a) return false;
  if (asked == Asked::difference_more && c > b) return false;  // not more back than was given
  return answer_of(asked, a, b, c) >= 1;
}

class WordProblems final : public TextTask {
 public:
  TextProblem draw(Split split, int64_t difficulty, Rng& rng) const override {
    const bool large = difficulty % 2 == 0;
    while (true) {
      const WordForm& form = form_of<WordForm>(kWordForms, split, rng);
      if (!fits(form.asked, difficulty)) continue;
      const bool product = with_product(form.asked);
      const int64_t a = product ? between(2, 9, rng) : between(2, large ? 50 : 15, rng);
      const int64_t b = product ? between(2, 9, rng) : between(2, large ? 40 : 9, rng);
      const int64_t c = between(2, large ? 20 : 9, rng);
      if (!makes_sense(form.asked, a, b, c)) continue;
      const int64_t n = rng.below(std::size(kPeople)), m = rng.below(std::size(kPeople));
      if (m == n) continue;
      const std::pair<std::string_view, std::string> values[] = {
          {"n", kPeople[n]}, {"m", kPeople[m]}, {"t", kThings[rng.below(std::size(kThings))]},
          {"a", str(a)},     {"b", str(b)},     {"c", str(c)}};
      const bool three = of_two_steps(form.asked) && form.asked != Asked::twice;
      const std::string answer = str(answer_of(form.asked, a, b, c));
      return {filled(form.text, values), answer, in_order(three ? std::vector{a, b, c} : std::vector{a, b}),
              str(steps_of(form.asked, a, b, c), " = ", answer, ". The answer is ", answer, ".")};
    }
  }
};

}  // namespace

std::unique_ptr<TextTask> make_word_problems_task() { return std::make_unique<WordProblems>(); }

}  // namespace ucas
