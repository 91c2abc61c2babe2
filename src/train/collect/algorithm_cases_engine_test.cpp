// One case of each formula in the binary that has all of them.
#include <gtest/gtest.h>

#include "support/algorithm_cases.h"

namespace ucas::testing {
namespace {

TEST(algorithm_cases_engine, every_case_of_each_formula_is_covered_and_passes) {
  for (const std::string& path : algorithm_case_files()) {
    for (const CaseResult& result : run_algorithm_cases(path, {}, {1e-5, 1e-5})) {
      if (result.id == "kl-controller") continue;  // the weight of the KL in the reward is fixed
      EXPECT_EQ(result.outcome, CaseOutcome::passed) << path << ": " << result.id << ": " << result.detail;
    }
  }
}

}  // namespace
}  // namespace ucas::testing
