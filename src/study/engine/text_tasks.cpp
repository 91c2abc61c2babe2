#include "study/engine/text_tasks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "base/text/json.h"
#include "data/tasks/task.h"
#include "report/progress/train_progress.h"
#include "rollout/policy.h"
#include "text/tokenizer/tokenizer.h"
#include "train/sft/sft.h"

namespace ucas {

namespace {

// Of all tasks together, so that a prompt is not much longer than one of a single task.
int64_t shots_of_each(const StudyBase& base) {
  return std::max<int64_t>(1, kWorkedExamples / static_cast<int64_t>(base.tasks.size()));
}

constexpr const char* kDemonstrations = "demonstrations.jsonl";
constexpr int64_t kDemonstrationCount = 500;  // of all tasks together

std::string demonstrations(const StudyBase& base) {
  std::string text;
  for (const std::string& name : base.tasks) {
    const int64_t count = kDemonstrationCount / static_cast<int64_t>(base.tasks.size());
    for (const TextProblem& example : draw_examples(text_task_called(name), base.task_options, count)) {
      OrderedJson row;
      row["prompt"] = example.text;
      row["response"] = example.worked;
      text += json_text(row) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string text_tasks_hash(const StudyBase& base) {
  std::string text = join(base.tasks, ",") + "\n";
  for (const FieldValue& field : fields_of(base.task_options)) text += str(field.key, "=", field.value, "\n");
  return hash_of_text(text);
}

std::vector<std::string> text_task_files(const StudyBase& base, const std::string& home, const char* file) {
  std::vector<std::string> files;
  for (const std::string& name : base.tasks) files.push_back(path_join(path_join(home, name), file));
  return files;
}

std::string text_task_shots(const std::string& home) { return path_join(home, "shots.jsonl"); }

int64_t count_of_shots(const StudyBase& base) { return shots_of_each(base) * static_cast<int64_t>(base.tasks.size()); }

std::vector<std::string> text_task_graders(const StudyBase& base) {
  std::vector<std::string> graders;
  for (const std::string& name : base.tasks) {
    const std::string grader = grader_of(text_task_called(name));
    if (grader != "math") graders.push_back(str(name, "=", grader));
  }
  return graders;
}

void make_text_tasks(const StudyBase& base, const std::string& home) {
  if (exists(text_task_shots(home))) return;  // written last
  std::vector<std::vector<std::string>> examples;
  for (const std::string& name : base.tasks) {
    const std::string directory = path_join(home, name);
    write_text_task(directory, text_task_called(name), base.task_options);
    examples.push_back({});
    for (const std::string& line : split(read_file(path_join(directory, "shots.jsonl")), '\n')) {
      if (!line.empty()) examples.back().push_back(line);
    }
    log(str("made ", directory));
  }
  write_file(path_join(home, kDemonstrations), demonstrations(base));
  std::string shots;
  for (int64_t i = 0; i < shots_of_each(base); ++i) {
    for (const auto& lines : examples) shots += lines.at(static_cast<size_t>(i)) + "\n";
  }
  write_file(text_task_shots(home), shots);
}

void warm_up_base(const StudyBase& base, const std::string& home, const std::string& model, const std::string& device,
                  int64_t threads) {
  if (exists(path_join(model, "config.json"))) return log(str("reusing ", model));
  use_threads(threads);
  const Tokenizer tokenizer = Tokenizer::load(base.model);
  std::unique_ptr<Model> weights = load_model(base.model, parse_device(device), {.dtype = Dtype::bf16});
  SftConfig sft;
  sft.data = {path_join(home, kDemonstrations)};
  sft.steps = {base.warm_up};
  sft.batch_size = 16;
  run_sft(*weights, tokenizer, sft, model, *make_train_observer(ProgressMode::plain));
}

}  // namespace ucas
