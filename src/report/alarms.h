// What a careful reader would ask about first: the signs of each run (report/signs.h), those of its evaluation, and
// whether the evaluations can be compared. A note is the same with a reason not to worry. Checks that found nothing are
// listed, too.
#pragma once

#include <string>
#include <vector>

#include "report/summary.h"

namespace ucas {

struct Alarm {
  bool serious = true;  // false: a note
  std::string title;    // "Entropy collapse"
  std::string group;    // its title
  std::string run;      // the run's name, or several
  std::string what;     // the numbers
  std::string cause;    // what it usually means and what to do
};

struct AlarmReport {
  std::vector<Alarm> alarms;       // serious ones first
  std::vector<std::string> quiet;  // checks that ran and found nothing
};

AlarmReport find_alarms(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries);

}  // namespace ucas
