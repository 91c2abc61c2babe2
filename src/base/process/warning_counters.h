// Counts what a command skipped, retried or fell back on, so that its last line can say all of it (P12 of
// docs/reliability.md). The caller has already warned where it happened.
#pragma once

#include <cstdint>
#include <string>

namespace ucas {

// Name, and what one and several of it are called.
// clang-format off
#define UCAS_WARNINGS(X) \
  X(bad_row, "bad row", "bad rows") \
  X(prompt, "prompt", "prompts") \
  X(short_prompt, "prompt with less room for its response", "prompts with less room for their responses") \
  X(demonstration, "demonstration", "demonstrations") \
  X(unencodable, "row with bytes that have no token", "rows with bytes that have no token") \
  X(over_budget, "answer over the grader's budget", "answers over the grader's budget") \
  X(sandbox, "failure of the sandbox", "failures of the sandbox") \
  X(request, "request to a server", "requests to a server") \
  X(update, "update of weights", "updates of weights") \
  X(empty_step, "step with nothing to learn from", "steps with nothing to learn from") \
  X(rescored_step, "step scored by the trainer", "steps scored by the trainer") \
  X(unstored_step, "step without stored responses", "steps without stored responses") \
  X(unsaved, "checkpoint not saved", "checkpoints not saved") \
  X(passed_over, "checkpoint passed over", "checkpoints passed over") \
  X(changed, "change that was allowed", "changes that were allowed") \
  X(moved_log, "log moved or cut while it was written", "logs moved or cut while they were written") \
  X(stall, "alarm of the watchdog", "alarms of the watchdog")
// clang-format on
enum class Warning {
#define UCAS_ENUMERATOR(name, one, many) name,
  UCAS_WARNINGS(UCAS_ENUMERATOR)
#undef UCAS_ENUMERATOR
};

void count_warning(Warning what, int64_t count = 1);
int64_t warnings_counted(Warning what);
inline constexpr const char* kWarningsBegin = "warnings in total: ";
// "warnings in total: 1 bad row, 2 updates of weights"; "" where nothing was noted.
std::string warnings_in_words();

}  // namespace ucas
