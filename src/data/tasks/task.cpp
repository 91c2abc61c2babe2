#include "data/tasks/task.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

const char* word_of_split(Split split) {
  static constexpr const char* kNames[] = {"train", "dev", "test"};
  return kNames[static_cast<int>(split)];
}

constexpr int kExamplesStream = 3;  // the splits are 0 .. 2

struct TextTask {
  TextProblem (*sample)(Split split, int64_t difficulty, Rng& rng);
  const char* grader;
  uint64_t stream;
  const char* about;
};

const TextTask& task_of(TextTaskKind kind) {
  static constexpr TextTask kTasks[] = {
      {draw_word_problem, "math", 0, "a sentence or two about things that are bought, lost or shared"},
      {draw_sum, "math", 2, "a chain of numbers to add and subtract"},
      {draw_countdown, "countdown", 5, "an expression of given numbers, each once, with a given value"}};
  return kTasks[static_cast<size_t>(kind)];
}

// A stream for each task, difficulty and file: the count of one file does not change another.
std::vector<TextProblem> sample(TextTaskKind kind, const TextTaskOptions& options, Split split, int64_t count,
                                int file) {
  const TextTask& task = task_of(kind);
  const uint64_t stream =
      0x7e47 + 1000 * task.stream + 10 * static_cast<uint64_t>(options.difficulty) + static_cast<uint64_t>(file);
  Rng rng(static_cast<uint64_t>(options.seed), stream);
  std::vector<TextProblem> problems;
  std::unordered_set<std::string> seen;
  int64_t repeats = 0;
  while (static_cast<int64_t>(problems.size()) < count) {
    TextProblem problem = task.sample(split, options.difficulty, rng);
    if (split_of(str(word_of(kind), " ", problem.numbers)) != split) continue;
    if (seen.insert(problem.text).second) {
      problems.push_back(std::move(problem));
    } else if (++repeats > 20 * std::ssize(problems) + 10000) {
      throw Error(ErrorKind::config,
                  str("count_", word_of_split(split), " = ", count, ": ", word_of(kind), " of difficulty ",
                      options.difficulty, " has hardly more than ", problems.size(),
                      " different questions of this split; lower the count or raise the difficulty"));
    }
  }
  return problems;
}

std::string example_lines(TextTaskKind kind, const TextTaskOptions& options) {
  std::string text;
  for (const TextProblem& example : draw_examples(kind, options)) {
    OrderedJson row;
    row["problem"] = example.text;
    row["response"] = example.worked;
    text += json_text(row) + "\n";
  }
  return text;
}

std::string lines_of(TextTaskKind kind, const TextTaskOptions& options, Split split, int64_t count) {
  std::string text;
  int64_t number = 0;
  for (const TextProblem& problem : sample_problems(kind, options, split, count)) {
    OrderedJson row;
    row["id"] = str(word_of_split(split), "-", number++);
    row["problem"] = problem.text;
    row["answer"] = problem.answer;
    row["data_source"] = word_of(kind);
    text += json_text(row) + "\n";
  }
  return text;
}

}  // namespace

std::string filled(std::string_view text, std::span<const std::pair<std::string_view, std::string>> values) {
  std::string done;
  while (!text.empty()) {
    const size_t open = text.find('{'), close = text.find('}', std::min(open, text.size()));
    done += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const auto value = std::ranges::find(values, name, [](const auto& pair) { return pair.first; });
    UCAS_CHECK(close != std::string_view::npos && value != values.end(), "a template must have placeholders");
    done += value->second;
    text.remove_prefix(close + 1);
  }
  return done;
}

std::string in_order(std::vector<int64_t> numbers) {
  std::ranges::sort(numbers);
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(str(number));
  return join(texts, " ");
}

int64_t between(int64_t low, int64_t high, Rng& rng) { return low + rng.below(high - low + 1); }

std::vector<TextProblem> sample_problems(TextTaskKind kind, const TextTaskOptions& options, Split split,
                                         int64_t count) {
  return sample(kind, options, split, count, static_cast<int>(split));
}

std::vector<TextProblem> draw_examples(TextTaskKind kind, const TextTaskOptions& options, int64_t count) {
  std::vector<TextProblem> examples = sample(kind, options, Split::train, count, kExamplesStream);
  for (TextProblem& example : examples) {
    if (example.worked.empty()) example.worked = str("The answer is ", example.answer, ".");
  }
  return examples;
}

void write_text_task(const std::string& directory, TextTaskKind kind, const TextTaskOptions& options) {
  // All problems are sampled before the first write: options that cannot be met leave nothing behind.
  const std::pair<const char*, std::string> files[] = {
      {"train.jsonl", lines_of(kind, options, Split::train, options.count_train)},
      {"dev.jsonl", lines_of(kind, options, Split::dev, options.count_dev)},
      {"test.jsonl", lines_of(kind, options, Split::test, options.count_test)},
      {"shots.jsonl", example_lines(kind, options)},
      {"task.toml",
       str("# Options of `ucas make-task --task ", word_of(kind), "` that made these files.\n", to_toml(options))},
  };
  make_directories(directory);
  for (const auto& [name, text] : files) write_file(path_join(directory, name), text);
}

TextTaskKind text_task_called(const std::string& name) {
  constexpr auto known = names(TextTaskKind{});
  const std::vector<std::string> all(known.begin(), known.end());
  const auto found = std::ranges::find(all, name);
  if (found != all.end()) return static_cast<TextTaskKind>(found - all.begin());
  throw Error(ErrorKind::config,
              str("task \"", printable(name), "\": expected one of ", join(all, ", "), did_you_mean(name, all)));
}

const char* grader_of(TextTaskKind kind) { return task_of(kind).grader; }

const char* about(TextTaskKind kind) { return task_of(kind).about; }

namespace {
constexpr size_t kEmbeddedKinds = names(TaskKind{}).size();
}  // namespace

std::optional<TaskKind> embedded_task(TaskName name) {
  const auto index = static_cast<size_t>(name);
  return index < kEmbeddedKinds ? std::optional(static_cast<TaskKind>(index)) : std::nullopt;
}

std::optional<TextTaskKind> text_task(TaskName name) {
  const auto index = static_cast<size_t>(name);
  return index < kEmbeddedKinds ? std::nullopt : std::optional(static_cast<TextTaskKind>(index - kEmbeddedKinds));
}

}  // namespace ucas
