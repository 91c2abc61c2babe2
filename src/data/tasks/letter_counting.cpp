// letter-counting: how often a letter occurs in a made-up word of 3 + difficulty letters. As many words ask for a
// letter that occurs twice or more as for one that occurs once.
#include <algorithm>

#include "base/str.h"
#include "data/tasks/registry.h"

namespace ucas {

namespace {

constexpr QuestionForm kCountingForms[] = {
    {Split::train, "How many times does the letter \"{l}\" occur in \"{w}\"?"},
    {Split::train, "Count the letter \"{l}\" in the word \"{w}\"."},
    {Split::train, "How often is \"{l}\" written in \"{w}\"?"},
    {Split::dev, "How many letters \"{l}\" are there in \"{w}\"?"},
    {Split::test, "In the word \"{w}\", how many times do you see the letter \"{l}\"?"},
    {Split::test, "What is the number of times that \"{l}\" appears in \"{w}\"?"},
};

class LetterCounting final : public TextTask {
 public:
  TextProblem draw(Split split, int64_t difficulty, Rng& rng) const override {
    const QuestionForm& form = form_of<QuestionForm>(kCountingForms, split, rng);
    const bool often = rng.below(2) == 0;
    while (true) {
      const std::string word = made_up_word(3 + difficulty, rng);
      const char letter = word[static_cast<size_t>(rng.below(static_cast<int64_t>(word.size())))];
      const int64_t count = std::ranges::count(word, letter);
      if (often != (count > 1)) continue;
      const std::pair<std::string_view, std::string> values[] = {{"l", std::string(1, letter)}, {"w", word}};
      return {filled(form.text, values), str(count), word};
    }
  }
};

}  // namespace

std::unique_ptr<TextTask> make_letter_counting_task() { return std::make_unique<LetterCounting>(); }

}  // namespace ucas
