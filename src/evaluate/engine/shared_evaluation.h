// An evaluation by several ranks. Rank 0 alone knows the problems, keeps the journal and counts; the others sample
// (rollout/shared_rollout.h), compare choices and grade what it sends them. Scores and verdicts are those of one
// process. Fed by evaluation.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evaluate/engine/choices.h"
#include "rollout/rollouter.h"
#include "sharding/ranks.h"
#include "verify/registry.h"

namespace ucas {

// Of rank 0: score_choices() and grade_all() by all ranks. `graded_by`: by source, what its grader is made of.
using GradedBy = std::map<std::string, std::pair<GraderKind, Extract>>;
std::vector<ChoiceScore> score_choices_shared(Model& model, std::span<const ChoiceQuestion> questions, Ranks& ranks);
std::vector<Verdict> grade_for_all(const Graders& graders, const GradedBy& graded_by, std::span<const GradeItem> items,
                                   Ranks& ranks);

// Of the others, until rank 0 dismisses them. Borrows all.
struct FollowedEvaluation {
  Rollouter& own;
  std::function<Model&()> model;
  std::function<std::unique_ptr<Grader>(GraderKind kind, Extract extract)> make_grader;
  std::function<bool()> should_stop;
};
void follow_evaluation(const FollowedEvaluation& with, Ranks& ranks);

}  // namespace ucas
