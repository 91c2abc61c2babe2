// `ucas verify RUN`: grades what a run stored again, and says which verdicts flip.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "verify/registry.h"

namespace ucas {

struct RegradeOptions {
  std::optional<GraderKind> grader;  // instead of the recorded ones
  std::optional<Extract> extract;
  int64_t shown = 20;  // flips to list for each part of the run
  bool json = false;
};

// Exit code: kDiffers where the recorded grader no longer says what it said.
int verify_run(const std::string& run, const RegradeOptions& options);

}  // namespace ucas
