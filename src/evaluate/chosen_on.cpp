#include "evaluate/chosen_on.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/fields.h"
#include "compare/answers.h"
#include "config/train_config.h"
#include "data/problems.h"
#include "records/run_record.h"

namespace ucas {

namespace {

// RUN of RUN/checkpoints/step-0000012; "" of any other directory.
std::string run_of_checkpoint(const std::string& checkpoint) {
  const std::filesystem::path path = std::filesystem::path(checkpoint).lexically_normal();
  const std::filesystem::path place = path.has_filename() ? path : path.parent_path();
  if (place.parent_path().filename() != "checkpoints") return "";
  const std::filesystem::path run = place.parent_path().parent_path();
  return exists((run / "config.toml").string()) ? (run.empty() ? "." : run.string()) : "";
}

// What chose this step among others: "train.best_metric", ..; "" if nothing did.
std::string choice(const TrainConfig& config, const StepTable& steps, const std::string& checkpoint) {
  const RunConfig& t = config.train;
  const std::vector<double> validated = steps.mean_over(t.best_metric);
  const std::string name = std::filesystem::path(checkpoint).lexically_normal().filename().string();
  size_t best = validated.size(), known = 0;
  for (size_t i = 0; i < validated.size(); ++i) {
    if (std::isnan(validated[i]) || steps.step[i] < 1) continue;
    ++known;
    if (best == validated.size() || validated[i] > validated[best]) best = i;
  }
  if (known < 2) return "";
  const size_t digits = name.find_first_of("0123456789");
  const bool is_best = digits != std::string::npos &&
                       static_cast<double>(std::strtoll(name.c_str() + digits, nullptr, 10)) == steps.step[best];
  return is_best ? str("train.best_metric = \"", t.best_metric, "\"") : "";
}

std::string what_chose(const std::string& checkpoint, std::span<const Problem> evaluated) {
  const std::string run = run_of_checkpoint(checkpoint);
  if (run.empty()) return "";
  const RunRecord record = read_run(run);
  const TrainConfig config = make_train_config(read_toml(path_join(run, "config.toml")));
  if (config.train.best_metric.empty()) return "";
  const std::string by = choice(config, record.steps, checkpoint);
  if (by.empty()) return "";
  ProblemOptions options;
  options.labels = false;
  options.columns = config.data.columns;
  options.bad_rows = config.data.skip_bad_rows ? BadRows::skip : BadRows::stop;
  std::set<std::string> validated;
  for (const Problem& problem : read_problems(config.data.val_files, options)) {
    validated.insert(content_of(problem.text, problem.gold));
  }
  const auto same = std::ranges::count_if(
      evaluated, [&](const Problem& problem) { return validated.contains(content_of(problem.text, problem.gold)); });
  if (same == 0) return "";
  return str(printable(checkpoint, 200), " was chosen by its validation (", by, "), and ", grouped(same), " of the ",
             grouped(std::ssize(evaluated)), " problems evaluated here are among those of the validation (",
             printable(join(config.data.val_files, ", "), 200),
             "): its figures on them are too high; evaluate on problems that chose nothing");
}

}  // namespace

std::string chosen_on(const std::string& checkpoint, std::span<const Problem> evaluated) {
  try {
    return what_chose(checkpoint, evaluated);
  } catch (const Error&) {
    return "";  // files have moved since: nothing can be said
  }
}

}  // namespace ucas
