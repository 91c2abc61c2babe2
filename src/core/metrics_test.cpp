#include "core/metrics.h"

#include <gtest/gtest.h>

#include <set>

namespace ucas {
namespace {

TEST(metrics, each_number_is_declared_once_and_found_by_its_name) {
  std::set<std::string> names;
  for (const MetricSection& section : metric_sections()) {
    ASSERT_FALSE(section.rows.empty()) << section.name;
    EXPECT_NE(std::string(section.rows[0]->help), "") << section.name << ": the first row says what it means";
    for (const Metric* row : section.rows) {
      const std::string name = documented_name(*row);
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(find_metric(name), row) << name;
    }
  }
  EXPECT_EQ(find_metric("actor/entropi"), nullptr);
  EXPECT_EQ(find_metric("actor"), nullptr);
  EXPECT_EQ(find_metric(""), nullptr);
}

TEST(metrics, a_pattern_holds_for_each_source_and_each_count) {
  EXPECT_EQ(find_metric("val-core/openai/gsm8k/acc/mean@1"), &metric::val_accuracy);
  EXPECT_EQ(find_metric("val-core/gsm8k/acc/mean@16"), &metric::val_mean_at);
  EXPECT_EQ(find_metric("val-aux/gsm8k/acc/best@4/mean"), &metric::val_best_at);
  EXPECT_EQ(find_metric("rewards/format/std"), &metric::rewards_std);
  EXPECT_EQ(find_metric("val-core//acc/mean@1"), nullptr) << "a * is one character or more";
  EXPECT_EQ(name_with(metric::val_best_at, {"gsm8k", "4"}), "val-aux/gsm8k/acc/best@4/mean");
  EXPECT_EQ(documented_name(metric::val_mean_at), "val-core/SOURCE/acc/mean@K");
}

TEST(metrics, a_spread_has_the_three_names_of_verl) {
  EXPECT_EQ(std::string(metric::critic_score.mean.key), "critic/score/mean");
  EXPECT_EQ(std::string(metric::critic_score.max.key), "critic/score/max");
  EXPECT_EQ(std::string(metric::critic_score.min.key), "critic/score/min");
  EXPECT_EQ(metric::response_length.max.unit, Unit::tokens);
}

}  // namespace
}  // namespace ucas
