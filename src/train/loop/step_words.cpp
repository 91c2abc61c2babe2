#include "train/loop/step_words.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "verify/audit/explain.h"

namespace ucas {

void warn_of_unreadable(const Training& t, const CollectStats& stats) {
  if (!t.config.reward.command.empty() || stats.graded == 0) return;  // a program's score may need no answer
  const int64_t unreadable = stats.verdicts[static_cast<size_t>(VerdictKind::unparseable)];
  const double share = static_cast<double>(unreadable) / static_cast<double>(stats.graded);
  if (share <= kManyUnreadable) return;
  const std::vector<std::string_view> texts(stats.unreadable.begin(), stats.unreadable.end());
  warn(str("step ", t.state.step, ": ",
           unreadable_in_words(share, stats.graded, texts, t.config.reward.grader, t.config.reward.setup().extract,
                               "--reward.extract")));
}

std::string share_words(const StepMetrics& m) {
  constexpr std::pair<const Metric*, const char*> kShares[] = {{&metric::perf_mfu_rollout, "sampling "},
                                                               {&metric::perf_mbu_rollout, "sampling, of bandwidth "},
                                                               {&metric::perf_mfu_actor_infer, "old log-probs "},
                                                               {&metric::perf_mfu_actor, "update "}};
  std::vector<std::string> parts;
  for (const auto& [metric, words] : kShares)
    if (const double share = m.get(*metric); std::isfinite(share)) parts.push_back(words + percent(share, 0));
  return join(parts, ", ");
}

}  // namespace ucas
