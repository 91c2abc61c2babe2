// What can go wrong in a training, one row each: the number that shows it, where it begins to matter, what it usually
// means and what to try. The report's alarms and the dashboard take theirs from here (report/alarms), `ucas diagnose`
// asks all of them, and when each began.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stats/spread.h"

namespace ucas {

struct CauseRemedy {
  const char* option;  // of `ucas train`
  const char* how;     // what to do with it
};

// When a number is a sign.
enum class CauseRule : uint8_t {
  above,       // mean of the last ten steps over the limit, and still
  below,       // under it
  over_first,  // over so many times what it was at the beginning
  under_first,
  ever,     // one step over the limit is enough
  spike,    // over so many times the largest of the steps before, and over the floor
  counter,  // it only grows; 0 is healthy
  special,  // a function of its own (report/causes/find.cpp)
};

// Which stored responses show it.
enum class ShownBy : uint8_t { none, cut, unreadable, costly, wrong, repeated, paid_wrong, long_ones, right };
// Which tokens of a saved step show it.
enum class ShownIn : uint8_t { none, sure, unsure, differing, moved };

struct CauseKind {
  const char* title;
  bool alarm = false;  // also looked for while the run trains, and by the report
  const char* key;     // of core/metrics.h, or of the stored responses ("stored/...")
  CauseRule rule;
  double limit = 0;
  double floor = 0;
  const char* when = "";               // where the rule does not say it, for docs/metrics.md
  const char* meaning;                 // what it usually means and what to look at
  std::vector<const char*> also = {};  // numbers that are shown beside
  ShownBy responses = ShownBy::none;
  ShownIn tokens = ShownIn::none;
  std::vector<CauseRemedy> remedies;
  bool needs_trouble = false;  // harmless while the reward has risen and stays: then a note
};

std::span<const CauseKind> cause_kinds();
const CauseKind& cause_kind(std::string_view title);  // a bug if there is none
// When it stands, in Markdown: "mean of the last 10 `train/dead_groups` above 50 %".
std::string when_of(const CauseKind& kind);

// Shares of groups that are solved by all and by none of their responses, in words.
const char* dead_groups_reading(double all, double none);

constexpr size_t kCauseWindow = 10;  // steps over which shares are averaged

}  // namespace ucas
