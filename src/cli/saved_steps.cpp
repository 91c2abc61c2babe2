#include "cli/saved_steps.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "records/run/run_directory.h"
#include "records/run/step_data.h"

namespace ucas {

namespace {

std::string signals_file(const std::string& run, int64_t step) {
  return path_join(path_join(run, "signals"), step_name(step) + ".jsonl");
}

}  // namespace

std::vector<std::string> saved_steps_of(const std::string& run) {
  std::vector<std::string> files;
  for (const int64_t step : steps_with_signals(run)) files.push_back(signals_file(run, step));
  return files;
}

std::vector<std::string> saved_step_files(const std::string& path, int64_t step, SavedSteps which) {
  if (!is_directory(path)) {
    if (step > 0)
      throw Error(ErrorKind::usage, str("--step ", step, ": ", printable(path, 400), " is a file, not a run"));
    return {path};
  }
  const std::vector<std::string> saved = saved_steps_of(path);
  if (saved.empty()) {
    throw Error(ErrorKind::path,
                str(printable(path, 400),
                    ": no signals/step-N.jsonl in it; `ucas train` writes them where train.stored_signals is "
                    "above 0"));
  }
  if (step > 0) return {signals_file(path, step)};
  if (which == SavedSteps::last) return {saved.back()};
  return saved;
}

}  // namespace ucas
