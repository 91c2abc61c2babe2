#include "base/process/warning_counters.h"

#include <array>
#include <atomic>

#include "base/str.h"

namespace ucas {

namespace {

struct WarningWords {
  const char *one, *many;
};

// In the order of Warning.
constexpr WarningWords kWarningWords[] = {
    {"bad row", "bad rows"},
    {"prompt", "prompts"},
    {"prompt with less room for its response", "prompts with less room for their responses"},
    {"demonstration", "demonstrations"},
    {"row with bytes that have no token", "rows with bytes that have no token"},
    {"answer over the grader's budget", "answers over the grader's budget"},
    {"failure of the sandbox", "failures of the sandbox"},
    {"request to a server", "requests to a server"},
    {"update of weights", "updates of weights"},
    {"step with nothing to learn from", "steps with nothing to learn from"},
    {"step scored by the trainer", "steps scored by the trainer"},
    {"step without stored responses", "steps without stored responses"},
    {"checkpoint not saved", "checkpoints not saved"},
    {"checkpoint passed over", "checkpoints passed over"},
    {"change that was allowed", "changes that were allowed"},
    {"log moved or cut while it was written", "logs moved or cut while they were written"},
    {"alarm of the watchdog", "alarms of the watchdog"},
};
constexpr size_t kWarnings = std::size(kWarningWords);
static_assert(kWarnings == static_cast<size_t>(Warning::stall) + 1);

std::array<std::atomic<int64_t>, kWarnings> counts{};

}  // namespace

void count_warning(Warning what, int64_t count) { counts[static_cast<size_t>(what)] += count; }

int64_t warnings_counted(Warning what) { return counts[static_cast<size_t>(what)]; }

std::string warnings_in_words() {
  std::vector<std::string> parts;
  for (size_t i = 0; i < kWarnings; ++i) {
    const int64_t n = counts[i];
    if (n > 0) parts.push_back(str(grouped(n), " ", n == 1 ? kWarningWords[i].one : kWarningWords[i].many));
  }
  return parts.empty() ? "" : kWarningsBegin + join(parts, ", ");
}

}  // namespace ucas
