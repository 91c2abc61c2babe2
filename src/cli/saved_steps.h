// Which saved steps (records/run/step_data.h) a command reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

// Those of a run directory, ascending; none if it has none.
std::vector<std::string> saved_steps_of(const std::string& run);

// `path` itself, or files of the run directory `path`: of the step asked for, else (0) the last one or all. Errors:
// usage (a step of a file), path (nothing saved there).
enum class SavedSteps { last, all };
std::vector<std::string> saved_step_files(const std::string& path, int64_t step, SavedSteps which);

}  // namespace ucas
