// What `ucas train` says before the first step.
#include <algorithm>

#include "base/str.h"
#include "base/terminal/log.h"
#include "train/loop/start.h"

namespace ucas {

namespace {

// Of the run, in steps and in epochs.
std::string length_in_words(const TrainConfig& c, int64_t problems, int64_t total_steps) {
  if (c.uses_passes()) {
    const std::string epochs = str(c.train.epochs, c.train.epochs == 1 ? " epoch, " : " epochs, ");
    if (c.steps_are_known()) return str(epochs, total_steps, total_steps == 1 ? " step" : " steps");
    return str(epochs, "at most ", total_steps,
               " steps: a step takes generation batches until enough prompts are kept");
  }
  const auto prompts = static_cast<double>(c.train.steps * c.gen_batch() * c.fewest_gen_batches());
  const double epochs = prompts / static_cast<double>(problems);
  return str(c.train.steps, c.train.steps == 1 ? " step, " : " steps, ", c.prompts_are_known() ? "" : "at least ",
             fixed(epochs, epochs < 10 ? 2 : 0), " epochs");
}

// Which of the generated prompts are kept; "" where all are.
std::string keeping_in_words(const KeepRule& kept) {
  if (!kept.filters()) return "";
  if (kept.order == KeepOrder::prefer) return str(", those with ", kept.words(), " first");
  const std::string most = kept.max_gen_batches == 0 ? "as many generation batches as that takes"
                                                     : str("at most ", kept.max_gen_batches, " generation batch",
                                                           kept.max_gen_batches == 1 ? "" : "es");
  return str(", those with ", kept.words(), " kept, ", most);
}

void say(const std::string& name, const std::string& value) { log(str("  ", pad_right(name, 22), value)); }

}  // namespace

void announce(const Training& t, int64_t total_steps) {
  const TrainConfig& c = t.config;
  const int64_t batch = c.data.train_batch_size, mini = std::min(batch, c.update.mini_batch_size);
  const int64_t updates = (batch + c.update.mini_batch_size - 1) / c.update.mini_batch_size * c.update.epochs;
  log(str(c.title(), " on ", c.model, " -> ", t.run.path()));
  say("problems",
      str(grouped(t.data.size()), t.data.dropped > 0 ? str(" (", t.data.dropped, " over-long prompts dropped)") : ""));
  say("prompts per step", str(batch, ", generated ", c.gen_batch(), " at a time", keeping_in_words(c.keep_rule())));
  say("samples per prompt",
      str(c.rollout.n, ", up to ", c.rollout.response_length, " tokens, temperature ", c.rollout.temperature));
  say("updates per step",
      str(updates, " of ", mini, " prompts (", mini * c.rollout.n, " responses), lr ", c.optimizer.lr));
  say("tokens per step",
      str("at most ", grouped(c.gen_batch() * c.rollout.n * c.rollout.response_length), " a generation batch"));
  bool by_group = std::ranges::any_of(fields_of(c), [](const FieldValue& f) { return f.key == "method.group_of_one"; });
  if (c.rollout.n == 1 && by_group) {
    warn(str("rollout.n = 1: ", c.method->title(),
             " compares the responses to a prompt, and there is only one; its "
             "advantage is made of its reward alone"));
  }
  say("length", str(length_in_words(c, t.data.size(), total_steps),
                    t.state.step > 0 ? str("; ", t.state.step, " steps done") : ""));
  if (!t.plan.words.empty()) say("memory, planned", t.plan.words);
  if (!t.validation.problems.empty()) {
    const int64_t every = c.train.test_freq;
    const std::string often = every == 1 ? "every step" : str("every ", every, " steps");
    const std::string sampled = c.train.val_n > 0 ? str(" and ", c.train.val_n, " samples each") : "";
    say("validation", every == 0 ? std::string("off (train.test_freq = 0)")
                                 : str(t.validation.size(), " problems, greedy", sampled, ", ", often));
  }
}

}  // namespace ucas
