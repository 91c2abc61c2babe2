// Runs worked numeric cases {id, method, variant, inputs, expected} against the program, whatever file they come from:
// the check is chosen by method and by which inputs are there, never by id. Figures of such a file are rounded to
// 6 decimals. An input that nothing reads, or an expected figure that nothing compares, fails its case.
// Checks: cases_*.cpp, those that need the engine in support/engine/.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "support/case_run.h"

namespace ucas::testing {

enum class CaseOutcome { passed, failed, not_covered };
struct CaseResult {
  std::string id, method, variant, detail;
  CaseOutcome outcome = CaseOutcome::not_covered;
  double worst = 0;  // largest absolute difference
};

// Says of a case that its formula is not in this binary.
struct NotCovered {
  std::string why;
};
using CaseKind = std::function<void(CaseRun& run)>;  // may throw NotCovered
// The checks of this binary by method.
std::map<std::string, CaseKind>& case_kinds();
// Adds checks before main() runs: `const AddCaseKinds kMine{{"lm-head", check_lm_head}};`
struct AddCaseKinds {
  explicit AddCaseKinds(const std::map<std::string, CaseKind>& kinds) {
    for (const auto& [method, check] : kinds) case_kinds()[method] = check;
  }
};

using CaseCheck = std::function<void(const Json& test_case, CaseReport& report)>;
// `more`: checks by the case's id or method, tried before the others; they compare what they like.
// Throws Error if the file is not one of cases.
std::vector<CaseResult> run_algorithm_cases(const std::string& path, const std::map<std::string, CaseCheck>& more = {},
                                            Tolerance tolerance = kTight);

// A table by method, a line for each case that failed or is not covered, and the sum.
std::string case_table(const std::vector<CaseResult>& results);

// `ucas-tests --algorithm-cases FILE`. The plain binary hands over to ucas-tests-engine beside it, if that is built.
// Exit status: 0 all passed, 1 something failed or is not covered, 2 bad input.
int algorithm_cases_main(int argc, char** argv);

// Files of cases: our own (tests/goldens/algorithm_cases.json, written by tools/make_case_goldens.py) and, where it is
// at hand, the design sheet's beside the shared data.
std::vector<std::string> algorithm_case_files();

}  // namespace ucas::testing
