// From stored responses to figures: grading, counting, intervals. The same function serves an evaluation that has just
// generated them, one that is resumed, and `ucas verify-run`, which starts from the files. LibTorch-free.
// Threads: one caller at a time.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/eval_config.h"
#include "core/problem.h"
#include "evaluate/outputs.h"
#include "evaluate/result.h"
#include "verify/grader.h"

namespace ucas {

// Who grades which source (benchmark).
struct Graders {
  std::shared_ptr<const Grader> standard;
  std::map<std::string, std::shared_ptr<const Grader>> of;  // sources with one of their own
  const Grader& for_source(const std::string& source) const;
};

// `responses` by problem (outputs.h: by_problem). The result has figures and rows; label, model and data are left to
// the caller.
EvalResult score(std::span<const Problem> problems, std::span<const Responses> responses, const Graders& graders,
                 const EvalConfig& config);

}  // namespace ucas
