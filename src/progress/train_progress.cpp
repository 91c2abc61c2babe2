#include "progress/train_progress.h"

#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "progress/dashboard.h"
#include "progress/run_history.h"
#include "results/table.h"

namespace ucas {

namespace {

// A line every few seconds (base/terminal/log) and at the end, and one for each alarm of the report when it begins and
// when it ends.
class PlainProgress final : public TrainObserver {
 public:
  void begin(const TrainStart& start) override {
    done_ = start.step;
    by_prompts_ = start.total_prompts > 0;  // the number of steps is unknown
    if (by_prompts_) {
      done_ = start.prompts;
      progress_.emplace(start.title, start.total_prompts, "prompts", start.prompts);
    } else {
      progress_.emplace(start.title, start.total_steps, start.supervised ? "updates" : "steps", start.step);
    }
    history_.begin(start);
    for (const FoundSign& sign : history_.alarms()) said_.insert(sign.row->title);  // before this start
  }
  void phase(const std::string&, const std::string& detail) override {
    if (!detail.empty()) progress_->update(done_, "  " + detail);
  }
  void step(int64_t step, StepRow metrics, const TrainSample*) override {
    history_.add(step, metrics);
    say_alarms(step);
    if (step == 0) return;
    done_ = step;
    std::string note = by_prompts_ ? str("  step ", grouped(step)) : "";
    if (double prompts = value_in(metrics, metric::training_prompts.key); by_prompts_ && !std::isnan(prompts)) {
      done_ = static_cast<int64_t>(prompts);
    }
    for (const auto& [words, key, digits] : kShown) {
      const double value = value_in(metrics, key);
      if (std::isfinite(value)) note += str("  ", words, " ", digits < 0 ? measure_text(value) : fixed(value, digits));
    }
    const double validation = history_.steps().find(RunHistory::kValidation)->back();
    if (std::isfinite(validation)) note += str("  val ", fixed(validation, 3));
    progress_->update(done_, note);
    note_ = std::move(note);
  }
  void end() override {
    progress_->finish(note_);
    list_alarms(history_);
  }

 private:
  // Each when it begins and when it ends.
  void say_alarms(int64_t step) {
    std::set<std::string> now;
    for (const FoundSign& sign : history_.alarms()) {
      const std::string& title = sign.row->title;
      now.insert(title);
      if (!said_.contains(title)) log(str("alarm  ", title, " from step ", step, ": ", sign.what));
    }
    for (const std::string& title : said_) {
      if (!now.contains(title)) log(str("alarm  ", title, " is over, at step ", step));
    }
    said_ = std::move(now);
  }

  struct Shown {
    const char *words, *key;
    int digits;  // -1: as many as it needs
  };
  static constexpr Shown kShown[] = {{"loss", metric::sft_loss.key, 4},
                                     {"lr", metric::sft_lr.key, -1},
                                     {"reward", metric::critic_score.mean.key, 3},
                                     {"acc", metric::train_accuracy.key, 3},
                                     {"H", metric::actor_entropy.key, 3},
                                     {"len", metric::response_length.mean.key, 1},
                                     {"grad", metric::actor_grad_norm.key, 2},
                                     {"mismatch", metric::rollout_logprob_diff_max.key, 6}};
  std::optional<Progress> progress_;
  RunHistory history_;
  std::set<std::string> said_;  // titles of the alarms that stand
  std::string note_;            // of the last step
  int64_t done_ = 0;            // steps, or prompts
  bool by_prompts_ = false;
};

const std::pair<const char*, ProgressMode> kModes[] = {{"auto", ProgressMode::automatic},
                                                       {"plain", ProgressMode::plain},
                                                       {"dashboard", ProgressMode::dashboard},
                                                       {"none", ProgressMode::none}};

}  // namespace

ProgressMode parse_progress_mode(const std::string& word) {
  if (word.empty()) return ProgressMode::automatic;
  for (const auto& [name, mode] : kModes) {
    if (word == name) return mode;
  }
  throw Error(ErrorKind::usage, str("--progress ", printable(word), ": expected auto, plain, dashboard or none"));
}

std::unique_ptr<TrainObserver> make_train_observer(ProgressMode mode) {
  if (mode == ProgressMode::automatic) mode = stderr_is_terminal() ? ProgressMode::dashboard : ProgressMode::plain;
  if (mode == ProgressMode::dashboard) return std::make_unique<Dashboard>();
  if (mode == ProgressMode::plain) return std::make_unique<PlainProgress>();
  return std::make_unique<TrainObserver>();
}

}  // namespace ucas
