// Evaluations and runs as compare/ takes them, and how each was made, for people.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compare/answers.h"
#include "compare/groups.h"

namespace ucas {

// Of one evaluation: its problems, and its figures by name ("greedy", "mean@16", "entropy:math500" ...).
RunAnswers answers_of(const EvalRecord& evaluation);
RunAnswers answers_of(const RunRecord& run, const EvalRecord& evaluation);
// `choose`: the evaluation of a run, nullptr if it has none; such runs are left out.
AnswerGroup answers_of(const RunGroup& group, const std::function<const EvalRecord*(const RunRecord&)>& choose);

// What responses and verdicts of an evaluation were decided by.
std::vector<std::pair<std::string, std::string>> settings_of(const EvalRecord& evaluation);

}  // namespace ucas
