// Run directories as compare/ takes them. Threads: any; pure functions.
#pragma once

#include <functional>
#include <string>

#include "compare/answers.h"
#include "report/groups.h"

namespace ucas {

// Of one evaluation of a run: its problems, and its figures by name ("greedy", "mean@16", "entropy:math500" ...).
RunAnswers answers_of(const RunRecord& run, const EvalRecord& evaluation);

// `choose`: the evaluation of a run, nullptr if it has none; such runs are left out.
AnswerGroup answers_of(const RunGroup& group, const std::function<const EvalRecord*(const RunRecord&)>& choose);

}  // namespace ucas
