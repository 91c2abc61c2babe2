#include "train/loop/replay.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "config/policy_options.h"

namespace ucas {

int run_replay(const Words& words) {
  const CommandLine line = parse_command_line(words, {"show"});
  ReplayOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() != 1) {
    throw Error(ErrorKind::usage, str("expected one RUN, got ", line.positionals.size(), "; see ucas replay --help"));
  }
  const double began = now_seconds();
  const Replay made = replay(line.positionals[0], {options.step, options.problem, options.sample, options.threads});
  const double seconds = now_seconds() - began;
  int64_t same = 0;
  for (const Replayed& r : made.responses) {
    same += r.same() ? 1 : 0;
    const std::string head = str(printable(r.problem), " sample ", r.sample, ": ", r.tokens, " tokens, ");
    if (r.first_other >= 0) {
      out(str(head, "another token at ", r.first_other, "\n"));
    } else if (r.largest > 0) {
      out(str(head, "the same tokens, log-probs differ by up to ", r.largest, "\n"));
    } else if (made.responses.size() <= 16) {
      out(str(head, "identical\n"));
    }
    if (options.show)
      out(str(printable(r.text, 100000), "\n",
              r.same() ? "" : str("--- the run's:\n", printable(r.kept, 100000), "\n")));
  }
  const auto all = static_cast<int64_t>(made.responses.size());
  out(str("step ", made.step, ", weights of ", made.weights, ": ", same, " of ", all,
          " responses identical, tokens and log-probs\n"));
  log(str("replayed in ", human_seconds(seconds)));
  return same == all ? kDone : kDiffers;
}

}  // namespace ucas
