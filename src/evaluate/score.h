// From stored responses to figures: grading, counting, intervals. The same function serves an evaluation that has just
// generated them, one that is resumed, and `ucas verify RUN`, which starts from the files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/verdict.h"
#include "records/evaluation.h"
#include "records/outputs.h"
#include "verify/registry.h"

namespace ucas {

// What is graded, in this order: of each problem its greedy response, then its samples. Borrows both.
std::vector<GradeItem> items_to_grade(std::span<const Problem> problems, std::span<const Responses> responses);

// `responses` by problem (outputs.h: by_problem). The result has figures and rows; label, model and data are left to
// the caller.
EvalRecord score(std::span<const Problem> problems, std::span<const Responses> responses, const Graders& graders,
                 const EvalConfig& config);
// The same with verdicts that are there already, those of items_to_grade().
EvalRecord score(std::span<const Problem> problems, std::span<const Responses> responses, const Graders& graders,
                 const EvalConfig& config, std::vector<Verdict> verdicts);

}  // namespace ucas
