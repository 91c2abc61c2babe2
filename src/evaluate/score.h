// From stored responses to figures: grading, counting, intervals. The same function serves an evaluation that has just
// generated them, one that is resumed, and `ucas verify-run`, which starts from the files. LibTorch-free.
// Threads: one caller at a time.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/problem.h"
#include "records/eval_config.h"
#include "records/evaluation.h"
#include "records/outputs.h"
#include "verify/verifier.h"

namespace ucas {

// Who grades which source (benchmark).
struct Graders {
  std::shared_ptr<const Verifier> standard;
  std::map<std::string, std::shared_ptr<const Verifier>> of;  // sources with one of their own
  const Verifier& for_source(const std::string& source) const;
};

// `responses` by problem (outputs.h: by_problem). The result has figures and rows; label, model and data are left to
// the caller.
EvalRecord score(std::span<const Problem> problems, std::span<const Responses> responses, const Graders& graders,
                 const EvalConfig& config);

}  // namespace ucas
