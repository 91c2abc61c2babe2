// From stored responses to figures: grading, counting, intervals. The same function serves an evaluation that has just
// generated them, one that is resumed, and `ucas verify RUN`, which starts from the files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/problem.h"
#include "records/eval_config.h"
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

// Does the model know when it is right? One answer from the same responses as the other figures.
struct Judged {
  bool right = false;
  double mean_logprob = 0;  // over the response's tokens
  double confidence = 0;    // C(o|q) of Eq. 6
};

// Responses whose numbers are not finite (none was measured) are left out of what needs the number.
Calibration calibrate(std::span<const Judged> responses);

}  // namespace ucas
