// Every sampled response of an evaluation with its verdict. NAME.jsonl keeps the first few of a problem only; the
// others stand in NAME.outputs.jsonl, not graded, and are graded here as the run card says. For `ucas diagnose`;
// graders_of also for card_check.h. LibTorch-free.
#pragma once

#include <string>
#include <vector>

#include "evaluate/score.h"
#include "records/card.h"

namespace ucas {

// The graders of a card's sources; `compared` gets the sources whose choices are compared instead of generated. Error
// ("header_json") for a grader that is not known here.
Graders graders_of(const Card& card, std::vector<std::string>& compared);

// Of DIRECTORY/NAME.*, `evaluation` as read from there: its rows with all their samples. As they are where they hold
// all of them, or where the outputs or the card are not there. Errors: those of read_card and read_outputs.
std::vector<ProblemRow> rows_with_all_samples(const std::string& directory, const EvalRecord& evaluation);

}  // namespace ucas
