#include "study/engine/matched.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "records/run/run_directory.h"

namespace ucas {

ValidatedSteps validated_steps(const RunRecord& run, int64_t val_n) {
  ValidatedSteps out;
  const std::vector<double> accuracy = run.steps.mean_over(str("val-core/*/acc/mean@", std::max<int64_t>(val_n, 1)));
  for (size_t i = 0; i < accuracy.size(); ++i) {
    const auto step = static_cast<int64_t>(run.steps.step[i]);
    const bool kept = step > 0 && is_directory(path_join(run.path, str("checkpoints/", step_name(step))));
    if (std::isnan(accuracy[i]) || !kept) continue;
    out.step.push_back(step);
    out.accuracy.push_back(accuracy[i]);
  }
  return out;
}

std::vector<int64_t> matched_steps(const std::vector<ValidatedSteps>& runs) {
  double mark = 2;
  for (const ValidatedSteps& run : runs) {
    if (run.step.empty()) {
      throw Error(ErrorKind::config,
                  "matched_pass: a run has no checkpoint with a validation: set all.train.save_freq to "
                  "all.train.test_freq, all.train.keep to all of them, and give validation problems");
    }
    mark = std::min(mark, run.accuracy.back());
  }
  std::vector<int64_t> steps;
  for (const ValidatedSteps& run : runs) {
    size_t nearest = 0;
    for (size_t i = 1; i < run.step.size(); ++i) {
      if (std::fabs(run.accuracy[i] - mark) <= std::fabs(run.accuracy[nearest] - mark)) nearest = i;
    }
    steps.push_back(run.step[nearest]);
  }
  return steps;
}

}  // namespace ucas
