#include "train/loop/config.h"

#include <algorithm>

namespace ucas {

void RunConfig::fields(Fields& f) {
  f.field("steps", steps, Range{0, 1e9}, "rollout steps to train; 0 = as many as train.epochs gives", Effect::size);
  f.field("epochs", epochs, Range{1, 1e6}, "epochs over the training problems where train.steps = 0", Effect::size);
  f.field("save_freq", save_freq, Range{0, 1e9}, "steps between checkpoints; 0 = one at the end", Effect::bookkeeping);
  f.field("keep", keep, Range{1, 1000}, "number of newest checkpoints to keep", Effect::bookkeeping);
  f.field("test_freq", test_freq, Range{0, 1e9}, "steps between greedy validations; 0 = off", Effect::procedure);
  f.field("val_before_train", val_before_train, "validate before the first step", Effect::procedure);
  f.field("val_n", val_n, Range{0, 1 << 16},
          "sampled responses per validation problem for mean@n and pass@k, besides the greedy response; 0 = none",
          Effect::procedure);
  f.field("best_metric", best_metric,
          "validation metric in steps.jsonl whose best checkpoint is kept, such as \"val-core/*/acc/mean@1\" (mean "
          "over all matches of *); higher is better; empty = none",
          Effect::procedure);
  f.field("stored_prompts", stored_prompts, Range{0, 1000},
          "prompts per step whose responses are stored for the report", Effect::bookkeeping);
  f.field("stored_responses", stored_responses, Range{0, 1000}, "responses stored per stored prompt",
          Effect::bookkeeping);
  f.field("stored_signals", stored_signals, Range{0, 1e9},
          "steps between stored per-token signals for `ucas advantages` and the report, first step included; 0 = off",
          Effect::bookkeeping);
  f.field("max_hours", max_hours, Range{0, 1e5}, "hours until the run saves and exits 75; 0 = no limit",
          Effect::bookkeeping);
  f.field("watchdog", watchdog, Range{0, 1e7},
          "seconds without progress until a warning names the stuck phase, response, problem or grader; 0 = never",
          Effect::bookkeeping);
}

}  // namespace ucas
