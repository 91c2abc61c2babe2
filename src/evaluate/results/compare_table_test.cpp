#include "evaluate/results/table.h"

#include <gtest/gtest.h>

#include "base/str.h"

namespace ucas {
namespace {

// 100 problems, the first `right` of them answered.
EvalRecord compared_result(const std::string& label, int right, double level) {
  EvalRecord result;
  result.label = label;
  result.config.confidence_level = level;
  for (int i = 0; i < 100; ++i) {
    ProblemRow& row = result.rows.emplace_back();
    row.id = str(i);
    row.source = "s";
    row.greedy.emplace();
    row.greedy->verdict = i < right ? VerdictKind::equal : VerdictKind::unequal;
  }
  return result;
}

TEST(compare_table, the_level_of_an_evaluation_reaches_the_differences_below_its_table) {
  const auto text = [](double level) {
    return comparison_text(std::vector<EvalRecord>{compared_result("x", 40, level), compared_result("y", 45, level)});
  };
  // Bonett and Price for 5 gained, 0 lost of 100: 5 / 102 -+ z * 0.0253
  EXPECT_NE(text(0.95).find("+5.0  -0.1 to +9.9  "), std::string::npos) << text(0.95);
  EXPECT_NE(text(0.8).find("+5.0  +1.6 to +8.2  "), std::string::npos) << text(0.8);
  EXPECT_NE(text(0.8).find("higher"), std::string::npos) << text(0.8);
  EXPECT_NE(text(0.99).find("not significant"), std::string::npos) << text(0.99);
}

}  // namespace
}  // namespace ucas
