#include "data/prompts/few_shot.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "data/rows/jsonl.h"

namespace ucas {

namespace {

constexpr int64_t kMostShots = 64;

Template::Example read_example_row(const JsonRow& row) {
  const std::string question = first_key(row, {"problem", "question", "prompt"});
  const std::string answer = first_key(row, {"response", "solution", "answer", "ground_truth"});
  if (question.empty() || answer.empty()) {
    throw Error(ErrorKind::data_line,
                str(row.where, ": an example needs a question (\"problem\", \"question\" or \"prompt\") and ",
                    "what answers it (\"response\", \"solution\" or \"answer\")"));
  }
  return {text_field(row, question), answer_field(row, row.value.at(answer), answer, false).front()};
}

}  // namespace

void read_examples(Template& prompt_template, const std::string& where, const std::string& folder) {
  if (prompt_template.shots < 0 || prompt_template.shots > kMostShots) {
    throw Error(ErrorKind::config,
                str(where, ": shots = ", prompt_template.shots, ": expected 1 to ", kMostShots, ", or 0 for all"));
  }
  const int64_t most = prompt_template.shots > 0 ? prompt_template.shots + 1 : kMostShots + 1;
  const bool whole = prompt_template.few_shot.starts_with('/') || folder.empty();
  const std::string path = whole ? prompt_template.few_shot : path_join(folder, prompt_template.few_shot);
  prompt_template.examples.clear();
  read_json_lines(path, BadRows::stop, [&](const JsonRow& row) {
    if (std::ssize(prompt_template.examples) < most) prompt_template.examples.push_back(read_example_row(row));
  });
  if (prompt_template.shots == 0) prompt_template.shots = std::ssize(prompt_template.examples);
  if (prompt_template.shots == 0 || prompt_template.shots > kMostShots) {
    throw Error(ErrorKind::config,
                str(printable(path, 400), ": ", prompt_template.shots == 0 ? "no example" : "more than 64 examples",
                    "; say with shots how many of its rows are meant"));
  }
  if (std::ssize(prompt_template.examples) < prompt_template.shots) {
    throw Error(ErrorKind::empty, str(printable(path, 400), ": ", prompt_template.examples.size(),
                                      " examples, expected ", prompt_template.shots, " (shots of ", where, ")"));
  }
}

std::vector<Template::Example> examples_for(const Template& prompt_template, const Problem& problem) {
  std::vector<Template::Example> out;
  for (const Template::Example& example : prompt_template.examples) {
    if (std::ssize(out) < prompt_template.shots && trim(example.question) != trim(problem.text)) out.push_back(example);
  }
  return out;
}

}  // namespace ucas
