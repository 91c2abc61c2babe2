#include "base/terminal/log.h"

#include <gtest/gtest.h>

namespace ucas {

// The counts are the process's: other tests note things, too.
TEST(warning_counters, one_line_counts_each_kind_in_words) {
  const int64_t rows = warnings_counted(Warning::bad_row), alarms = warnings_counted(Warning::stall);
  count_warning(Warning::bad_row, 1234 - rows);
  count_warning(Warning::stall, 1 - alarms);
  const std::string line = warnings_in_words();
  EXPECT_TRUE(line.starts_with(kWarningsBegin)) << line;
  EXPECT_NE(line.find("1,234 bad rows"), std::string::npos) << line;
  EXPECT_NE(line.find("1 alarm of the watchdog"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  count_warning(Warning::bad_row, rows - 1234);
  count_warning(Warning::stall, alarms - 1);
  EXPECT_EQ(warnings_counted(Warning::bad_row), rows);
}

}  // namespace ucas
