// The design sheet's cases in the binary that has all of them.
#include <gtest/gtest.h>

#include "support/algorithm_cases.h"

namespace ucas::testing {
namespace {

TEST(algorithm_cases_engine, every_case_of_the_design_sheet_is_covered_and_passes) {
  std::string path = shared_algorithm_cases();
  if (path.empty()) GTEST_SKIP() << "algorithm-cases.json is not beside the shared data (UCAS_SHARED_DATA)";
  for (const CaseResult& result : run_algorithm_cases(path, {}, {1e-5, 1e-5})) {
    EXPECT_EQ(result.outcome, CaseOutcome::passed) << result.id << ": " << result.detail;
  }
}

}  // namespace
}  // namespace ucas::testing
