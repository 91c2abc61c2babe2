// Responses that something else generated, in JSON Lines: rows with a response (response, completion, output ..) and a
// question or an id, such as verl's dumps, TRL's tables of completions, and rows of `ucas generate --data`.
// Everything read is text to be graded; what those systems made of it (scores, rewards) is not used.
// Fed to `ucas evaluate --responses`. LibTorch-free.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/verdict.h"
#include "evaluate/score.h"
#include "records/evaluation.h"
#include "records/outputs.h"

namespace ucas {

struct GivenProblem {
  std::string where;              // FILE:LINE of its first response
  std::string id, source;         // id "" = the file has none
  std::string question;           // as the file has it: the question itself, or the whole prompt
  std::vector<std::string> gold;  // empty: the file has none
  std::vector<Output> responses;  // sample = 0, 1 ..; source and id are not set
};

using GivenResponses = std::vector<GivenProblem>;

// Errors: path, limit, empty, data_line (FILE:LINE, what, expected), unsupported (responses of ucas itself).
GivenResponses read_responses(const std::string& path);

// The problems of the file itself, where it has a right answer for each. Error(ErrorKind::data_line) where it has not.
std::vector<Problem> problems_of(const GivenResponses& given, const std::string& path);

// For each of `problems` the index of its responses: by id, else by the question, else by a prompt that holds the
// question. Error(ErrorKind::data_line) for responses of no problem, for two that fit one, and for problems without
// responses.
std::vector<size_t> match_responses(const GivenResponses& given, const std::vector<Problem>& problems,
                                    const std::string& path);

// Every sampled response of an evaluation with its verdict. NAME.jsonl keeps the first few of a problem only; the
// others are in NAME.outputs.jsonl, not graded, and are graded here as NAME.json says. For `ucas diagnose` and
// `ucas verify RUN`. LibTorch-free.

// The graders of its sources.
Graders graders_of(const Asked& asked);
std::vector<Problem> problems_of(const EvalRecord& evaluation);

// Of DIRECTORY/NAME.*, `evaluation` as read from there: its rows with all their samples. As they are where they hold
// all of them, or where the outputs are not there. Errors: those of read_outputs.
std::vector<ProblemRow> rows_with_all_samples(const std::string& directory, const EvalRecord& evaluation);

}  // namespace ucas
