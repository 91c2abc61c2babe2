// What functions of authors' released code make of batches (tests/goldens/released_method_cases.json, written by
// tools/method_goldens/released.py, which names repository and function).
#include <gtest/gtest.h>

#include "support/algorithm_cases.h"

namespace ucas::testing {
namespace {

TEST(released_code, methods_agree_with_what_the_authors_functions_compute) {
  auto results = run_algorithm_cases(UCAS_SOURCE_DIR "/tests/goldens/released_method_cases.json");
  for (const CaseResult& result : results) {
    EXPECT_EQ(result.outcome, CaseOutcome::passed) << result.id << ": " << result.detail;
  }
  EXPECT_EQ(results.size(), 11u);
}

}  // namespace
}  // namespace ucas::testing
