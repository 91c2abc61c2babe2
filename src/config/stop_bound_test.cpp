#include "config/stop_bound.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace ucas {
namespace {

using Row = std::vector<std::pair<std::string, double>>;

TEST(stop_bound, the_first_number_beyond_a_bound_is_named) {
  const std::vector<StopBound> bounds = parse_stop_bounds({"actor/entropy < 0.05", "val-core/*/acc/mean@1>0.9"});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(crossed(bounds, Row{{"actor/entropy", 0.05}, {"val-core/a/acc/mean@1", 0.9}}), "")
      << "at a bound is within";
  EXPECT_EQ(crossed(bounds, Row{{"actor/entropy", nan}, {"actor/lr", 0}}), "");
  EXPECT_EQ(crossed(bounds, Row{{"actor/lr", 0}, {"actor/entropy", 0.04}}),
            "actor/entropy = 0.04, below 0.05 (train.stop_when)");
  EXPECT_EQ(crossed(bounds, Row{{"val-core/a/acc/mean@1", 0.5}, {"val-core/b/acc/mean@1", 0.95}}),
            "val-core/b/acc/mean@1 = 0.95, above 0.9 (train.stop_when)");
  EXPECT_EQ(bound_without_metric(bounds, Row{{"actor/entropy", 1}, {"val-core/a/acc/mean@1", 1}}), nullptr);
  ASSERT_NE(bound_without_metric(bounds, Row{{"actor/entropy", 1}}), nullptr);
  EXPECT_EQ(bound_without_metric(bounds, Row{{"actor/entropy", 1}})->metric, "val-core/*/acc/mean@1");
}

TEST(stop_bound, what_is_no_bound_is_refused) {
  for (const char* entry : {"", "actor/entropy", "< 1", "a <", "a < x", "a <= 1", "a < 1 2", "a < inf", "a < nan"}) {
    EXPECT_THROW(parse_stop_bounds({entry}), Error) << entry;
  }
}

}  // namespace
}  // namespace ucas
