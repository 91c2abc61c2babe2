// The tasks for pretrained models, one row each: X(KIND, name in options and files, grader, number of its random
// streams, one line for people). A row without its make_KIND_task() fails to link.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "data/tasks/task.h"

// grader: verify/registry.h; with extract = lenient
#define UCAS_TEXT_TASKS(X)                                                                                       \
  X(word_problems, "word-problems", "math", 0, "a sentence or two about things that are bought, lost or shared") \
  X(sums, "sums", "math", 2, "a chain of numbers to add and subtract")                                           \
  X(countdown, "countdown", "countdown", 5,                                                                      \
    "an expression that reaches a target and uses each given number exactly once")

namespace ucas {

#define UCAS_DECLARE(kind, name, grader, stream, about) std::unique_ptr<TextTask> make_##kind##_task();
UCAS_TEXT_TASKS(UCAS_DECLARE)
#undef UCAS_DECLARE

#define UCAS_KIND(kind, name, grader, stream, about) kind,
enum class TextTaskKind : uint8_t { UCAS_TEXT_TASKS(UCAS_KIND) };
#undef UCAS_KIND

#define UCAS_NAME(kind, name, grader, stream, about) name,
constexpr auto names(TextTaskKind) { return std::to_array<const char*>({UCAS_TEXT_TASKS(UCAS_NAME)}); }
#undef UCAS_NAME

std::unique_ptr<TextTask> make_text_task(TextTaskKind kind);
TextTaskKind text_task_called(const std::string& name);  // Error(ErrorKind::config) naming those there are
const char* grader_of(TextTaskKind kind);                // its name in options
const char* about(TextTaskKind kind);

// The first `count` different problems of a split. Error(ErrorKind::config) where there are not so many.
std::vector<TextProblem> draw_problems(TextTaskKind kind, const TextTaskOptions& options, Split split, int64_t count);
// Worked examples of the train split, for the place before a question (data/prompts/chat.h).
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
