#include "base/lapses.h"

#include <gtest/gtest.h>

namespace ucas {

// The counts are the process's: other tests note things, too.
TEST(lapses, one_line_counts_each_kind_in_words) {
  const int64_t rows = noted(Lapse::bad_row), alarms = noted(Lapse::stall);
  note(Lapse::bad_row, 1234 - rows);
  note(Lapse::stall, 1 - alarms);
  const std::string line = lapses_in_words();
  EXPECT_TRUE(line.starts_with(kLapsesBegin)) << line;
  EXPECT_NE(line.find("1,234 bad rows"), std::string::npos) << line;
  EXPECT_NE(line.find("1 alarm of the watchdog"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  note(Lapse::bad_row, rows - 1234);
  note(Lapse::stall, alarms - 1);
  EXPECT_EQ(noted(Lapse::bad_row), rows);
}

}  // namespace ucas
