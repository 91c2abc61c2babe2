// Counts what a command skipped, retried or fell back on, so that its last line can say all of it (P12 of
// docs/reliability.md). The caller has already warned where it happened.
#pragma once

#include <cstdint>
#include <string>

namespace ucas {

enum class Warning {
  bad_row,        // left out under bad_rows = skip
  prompt,         // empty or too long
  short_prompt,   // leaves a response less room than was asked for
  demonstration,  // too long
  unencodable,    // a row with bytes that the tokenizer has no token for
  over_budget,    // an answer that a grader gave up on: its budget, its time
  sandbox,        // a failure that is not the program's; tried again
  request,        // to a server, asked again
  update,         // of the weights, not finite
  empty_step,     // nothing to learn from
  rescored_step,  // sampler and trainer differed
  unstored_step,  // its responses could not be written
  unsaved,        // a checkpoint that could not be written
  passed_over,    // a checkpoint that is not whole: the one before was taken
  changed,        // --allow-changes took something for the same
  moved_log,      // steps.jsonl, moved, deleted or cut while it was written
  stall,          // the watchdog spoke
};

void count_warning(Warning what, int64_t count = 1);
int64_t warnings_counted(Warning what);
inline constexpr const char* kWarningsBegin = "warnings in total: ";
// "warnings in total: 1 bad row, 2 updates of weights"; "" where nothing was noted.
std::string warnings_in_words();

}  // namespace ucas
