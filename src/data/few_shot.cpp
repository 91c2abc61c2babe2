#include "data/few_shot.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "data/jsonl.h"

namespace ucas {

namespace {

constexpr int64_t kMostShots = 64;

Template::Example read_example_row(const JsonRow& row) {
  const std::string question = first_key(row, {"problem", "question", "prompt"});
  const std::string answer = first_key(row, {"response", "solution", "answer", "ground_truth"});
  if (question.empty() || answer.empty()) {
    throw Error("data_line",
                str(row.where, ": an example needs a question (\"problem\", \"question\" or \"prompt\") and ",
                    "what answers it (\"response\", \"solution\" or \"answer\")"));
  }
  return {text_field(row, question), answer_field(row, row.value.at(answer), answer, false).front()};
}

}  // namespace

void read_examples(Template& form, const std::string& where, const std::string& folder) {
  if (form.shots < 0 || form.shots > kMostShots) {
    throw Error("config", str(where, ": shots = ", form.shots, ": expected 1 to ", kMostShots, ", or 0 for all"));
  }
  const int64_t most = form.shots > 0 ? form.shots + 1 : kMostShots + 1;
  const bool whole = form.few_shot.starts_with('/') || folder.empty();
  const std::string path = whole ? form.few_shot : path_join(folder, form.few_shot);
  form.examples.clear();
  read_json_lines(path, BadRows::stop, [&](const JsonRow& row) {
    if (std::ssize(form.examples) < most) form.examples.push_back(read_example_row(row));
  });
  if (form.shots == 0) form.shots = std::ssize(form.examples);
  if (form.shots == 0 || form.shots > kMostShots) {
    throw Error("config", str(printable(path, 400), ": ", form.shots == 0 ? "no example" : "more than 64 examples",
                              "; say with shots how many of its rows are meant"));
  }
  if (std::ssize(form.examples) < form.shots) {
    throw Error("empty", str(printable(path, 400), ": ", form.examples.size(), " examples, expected ", form.shots,
                             " (shots of ", where, ")"));
  }
}

std::vector<Template::Example> examples_for(const Template& form, const Problem& problem) {
  std::vector<Template::Example> out;
  for (const Template::Example& example : form.examples) {
    if (std::ssize(out) < form.shots && trim(example.question) != trim(problem.text)) out.push_back(example);
  }
  return out;
}

}  // namespace ucas
