#include "support/algorithm_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ucas::testing {
namespace {

// Failures as test failures; returns how many cases passed.
int expect_no_failure(const std::vector<CaseResult>& results) {
  int passed = 0;
  for (const CaseResult& result : results) {
    EXPECT_NE(result.outcome, CaseOutcome::failed) << result.id << ": " << result.detail;
    passed += result.outcome == CaseOutcome::passed;
  }
  return passed;
}

TEST(algorithm_cases, methods_and_objective_agree_with_an_independent_implementation) {
  auto results = run_algorithm_cases(UCAS_SOURCE_DIR "/tests/goldens/method_cases.json");
  EXPECT_EQ(expect_no_failure(results), static_cast<int>(results.size()));
  EXPECT_GE(results.size(), 16u);
}

TEST(algorithm_cases, the_design_sheet_agrees) {
  std::string path = shared_algorithm_cases();
  if (path.empty()) GTEST_SKIP() << "algorithm-cases.json is not beside the shared data (UCAS_SHARED_DATA)";
  auto results = run_algorithm_cases(path);
  EXPECT_GE(expect_no_failure(results), 23);
  for (const char* id : {"ucas-paper", "ucas-paper-two-groups", "ucas-paper-degenerate", "loss-ppo", "loss-dapo",
                         "grpo-adv-two-groups", "gspo", "high-entropy-released", "high-entropy-trl", "accum-token-mean",
                         "agg-empty-row", "pass-at-k", "kl-k3"}) {
    auto found = std::ranges::find(results, id, &CaseResult::id);
    ASSERT_NE(found, results.end()) << id;
    EXPECT_EQ(found->outcome, CaseOutcome::passed) << id << ": " << found->detail;
  }
}

TEST(algorithm_cases, a_wrong_figure_is_noticed) {
  CaseReport report;
  report.close("right", 1.0, 1.0000001);
  EXPECT_EQ(report.failure(), "");
  report.close("wrong", 1.0, 1.001);
  EXPECT_NE(report.failure().find("wrong"), std::string::npos);
  CaseReport nan;
  nan.close("nan", std::nan(""), 0.0);
  EXPECT_NE(nan.failure(), "");
}

}  // namespace
}  // namespace ucas::testing
