// Every sampled response of an evaluation with its verdict. NAME.jsonl keeps the first few of a problem only; the
// others stand in NAME.outputs.jsonl, not graded, and are graded here as NAME.json says. For `ucas diagnose` and
// `ucas verify RUN`. LibTorch-free.
#pragma once

#include <string>
#include <vector>

#include "evaluate/score.h"
#include "records/evaluation.h"

namespace ucas {

// The graders of its sources.
Graders graders_of(const Asked& asked);
std::vector<Problem> problems_of(const EvalRecord& evaluation);

// Of DIRECTORY/NAME.*, `evaluation` as read from there: its rows with all their samples. As they are where they hold
// all of them, or where the outputs are not there. Errors: those of read_outputs.
std::vector<ProblemRow> rows_with_all_samples(const std::string& directory, const EvalRecord& evaluation);

}  // namespace ucas
