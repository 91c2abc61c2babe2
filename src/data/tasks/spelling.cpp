// spelling: a made-up word of 2 + difficulty letters, to be spelled backward.
#include "base/str.h"
#include "data/tasks/registry.h"

namespace ucas {

namespace {

constexpr QuestionForm kSpellingForms[] = {
    {Split::train, "Spell the word \"{w}\" backward."},
    {Split::train, "What is \"{w}\" written backward?"},
    {Split::train, "Write the letters of \"{w}\" in reverse order."},
    {Split::dev, "How is \"{w}\" spelled from its last letter to its first?"},
    {Split::dev, "Reverse the word \"{w}\"."},
    {Split::test, "Read \"{w}\" from right to left. Which word is that?"},
    {Split::test, "Which word has the letters of \"{w}\" the other way round?"},
    {Split::test, "Turn the word \"{w}\" around, last letter first."},
};

class Spelling final : public TextTask {
 public:
  TextProblem draw(Split split, int64_t difficulty, Rng& rng) const override {
    const QuestionForm& form = form_of<QuestionForm>(kSpellingForms, split, rng);
    while (true) {
      const std::string word = made_up_word(2 + difficulty, rng), reversed(word.rbegin(), word.rend());
      if (word == reversed) continue;
      const std::pair<std::string_view, std::string> values[] = {{"w", word}};
      // The word and its reverse are of one split: either asks for what the other shows.
      return {filled(form.text, values), reversed, std::min(word, reversed), reversed};
    }
  }
};

}  // namespace

std::unique_ptr<TextTask> make_spelling_task() { return std::make_unique<Spelling>(); }

}  // namespace ucas
