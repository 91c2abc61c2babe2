// Who grades what, where problems of several kinds are in one run: a standard grader, and one for each data source that
// has its own. Read by evaluate/score, sharding/shared_grading and train/collect/reward.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "verify/registry.h"

namespace ucas {

struct Graders {
  std::shared_ptr<const Grader> standard;
  std::map<std::string, std::shared_ptr<const Grader>> of;  // sources with one of their own

  const Grader& for_source(const std::string& source) const;
};

// "SOURCE=GRADER" each. Error(ErrorKind::config, "WHERE: ...") where one is not of that form or not a grader.
std::map<std::string, GraderKind> parse_graders(const std::vector<std::string>& by_source, const std::string& where);
Graders make_graders(GraderKind standard, const std::map<std::string, GraderKind>& by_source, const GraderSetup& setup);

// A response to one of the problems.
struct GradeItem {
  const Problem* problem = nullptr;
  std::string_view response;
};
// One verdict per item, in order, by the grader of its problem's source; each grader gets all of its own at once.
std::vector<Verdict> grade_all(const Graders& graders, std::span<const GradeItem> items);

// A right answer that its grader cannot read, and a grader that cannot work here, are found before the first response:
// Error(ErrorKind::data_line, "sandbox").
void check_golds(const Graders& graders, std::span<const Problem> problems);

}  // namespace ucas
