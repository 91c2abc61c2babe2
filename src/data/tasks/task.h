// Small problems in English for pretrained models, made from nothing but a seed: one file and one row a task. Train,
// dev and test share neither a form (a way to put the question) nor the numbers of a question (of a task about words:
// its word), so that a held-out problem is never one of training in other words. Feeds `ucas make-task` and demo.
// Threads: any; a task holds no state.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/text/fields.h"
#include "data/tasks/register_chains.h"

namespace ucas {

struct TextProblem {
  std::string text, answer;
  std::string numbers;      // what must not be in two splits: "3 12", whatever their order in the question; or the word
  std::string worked = {};  // a short right response; "": "The answer is ANSWER."
};

constexpr int64_t kHardest = 4;  // difficulties are 1 .. 4

// One of `forms` that is of the split. Form has a member `split`.
template <class Form>
const Form& form_of(std::span<const Form> forms, Split split, Rng& rng) {
  while (true) {
    const Form& form = forms[static_cast<size_t>(rng.below(static_cast<int64_t>(forms.size())))];
    if (form.split == split) return form;
  }
}

struct QuestionForm {
  Split split;
  const char* text;  // with {places}
};

// `text` with each {NAME} as `values` has it.
std::string filled(std::string_view text, std::span<const std::pair<std::string_view, std::string>> values);
// "3 12 40" of {40, 3, 12}: the numbers of a question, whatever their order.
std::string in_order(std::vector<int64_t> numbers);
int64_t between(int64_t low, int64_t high, Rng& rng);  // both ends included

struct TextTaskOptions {
  int64_t difficulty = 1;
  int64_t seed = 0;
  int64_t count_train = 1000;
  int64_t count_dev = 64;
  int64_t count_test = 200;

  void fields(Fields& f) {
    f.field("difficulty", difficulty, Range{1, static_cast<double>(kHardest)},
            "difficulty of tasks for pretrained models: larger numbers, more steps");
    f.field("seed", seed, Range{0, 9e15}, "random seed of the task");
    f.field("count_train", count_train, Range{1, 1e6}, "problems in train.jsonl");
    f.field("count_dev", count_dev, Range{1, 1e6}, "problems in dev.jsonl");
    f.field("count_test", count_test, Range{1, 1e6}, "problems in test.jsonl");
  }
};

// The tasks for pretrained models, one row each: X(KIND, name in options and files, grader, number of its random
// streams, one line for people). A row without its make_KIND_task() fails to link.

// The tasks for pretrained models. Of each a row in task.cpp, and what samples a problem of one of the split's own
// forms, with any numbers.
enum class TextTaskKind : uint8_t { word_problems, sums, countdown };
constexpr std::array<const char*, 3> names(TextTaskKind) { return {"word-problems", "sums", "countdown"}; }
TextProblem draw_word_problem(Split split, int64_t difficulty, Rng& rng);
TextProblem draw_sum(Split split, int64_t difficulty, Rng& rng);
TextProblem draw_countdown(Split split, int64_t difficulty, Rng& rng);

TextTaskKind text_task_called(const std::string& name);  // Error(ErrorKind::config) naming those there are
const char* grader_of(TextTaskKind kind);                // its name in options; with extract = lenient
const char* about(TextTaskKind kind);                    // one line for people

// The first `count` different problems of a split. Error(ErrorKind::config) where there are not so many.
std::vector<TextProblem> sample_problems(TextTaskKind kind, const TextTaskOptions& options, Split split, int64_t count);
// Worked examples of the train split, for the place before a question (data/prompts/templates.cpp).
constexpr int64_t kWorkedExamples = 4;
std::vector<TextProblem> draw_examples(TextTaskKind kind, const TextTaskOptions& options,
                                       int64_t count = kWorkedExamples);
// Writes train.jsonl, dev.jsonl, test.jsonl {id, problem, answer, data_source}, shots.jsonl {problem, response} and
// task.toml (the options).
void write_text_task(const std::string& directory, TextTaskKind kind, const TextTaskOptions& options);

// Every task that `--task` names: the embedded one's kinds (data/tasks/register_chains.h), then those above.
enum class TaskName : uint8_t {};
constexpr auto names(TaskName) {
  constexpr auto embedded = names(TaskKind{});
  constexpr auto text = names(TextTaskKind{});
  std::array<const char*, embedded.size() + text.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = i < embedded.size() ? embedded[i] : text[i - embedded.size()];
  return all;
}
std::optional<TaskKind> embedded_task(TaskName name);  // one of both
std::optional<TextTaskKind> text_task(TaskName name);

}  // namespace ucas
