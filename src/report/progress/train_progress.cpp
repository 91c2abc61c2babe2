#include "report/progress/train_progress.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "records/run_record.h"
#include "results/table.h"

namespace ucas {

namespace {

struct ShownNumber {
  const char *words, *key;
  int digits;  // -1: as many as it needs
};
constexpr ShownNumber kNumbers[] = {{"loss", metric::sft_loss.key, 4},
                                    {"lr", metric::sft_lr.key, -1},
                                    {"reward", metric::critic_score.mean.key, 3},
                                    {"acc", metric::train_accuracy.key, 3},
                                    {"H", metric::actor_entropy.key, 3},
                                    {"len", metric::response_length.mean.key, 1},
                                    {"grad", metric::actor_grad_norm.key, 2},
                                    {"mismatch", metric::rollout_logprob_diff_max.key, 6},
                                    {"val", metric::val_accuracy.key, 3}};

// Signs that matter, as of now.
std::vector<FoundSign> active_signs(const StepTable& steps) {
  std::vector<FoundSign> found = find_signs(steps).found;
  std::erase_if(found, [](const FoundSign& sign) { return sign.note; });
  return found;
}

}  // namespace

void TrainView::begin(const TrainStart& start) {
  start_ = start;
  step_ = start.step;
  done_ = by_prompts() ? start.prompts : start.step;
  if (start.step == 0 || start.supervised) return;
  try {
    steps_ = read_run(start.run).steps;
  } catch (const Error&) {
    steps_ = {};
  }
  alarms_ = active_signs(steps_);
}

void TrainView::add(int64_t step, StepRow metrics) {
  const size_t before = steps_.step.size();
  steps_.step.push_back(static_cast<double>(step));
  for (const auto& [key, value] : metrics) {
    auto& column = steps_.column[key];
    column.resize(before, kUnknown);
    column.push_back(std::isfinite(value) ? value : kUnknown);
    if (!std::isfinite(value)) steps_.not_finite.emplace_back(key, static_cast<double>(step));
  }
  for (auto& [key, column] : steps_.column) column.resize(before + 1, kUnknown);
  alarms_ = active_signs(steps_);
  step_ = step;
  const double prompts = value_in(metrics, metric::training_prompts.key);
  if (!by_prompts()) done_ = step;
  if (by_prompts() && !std::isnan(prompts)) done_ = static_cast<int64_t>(prompts);
}

std::string TrainView::numbers() const {
  std::string text = by_prompts() ? str("  step ", grouped(step_)) : "";
  for (const auto& [words, key, digits] : kNumbers) {
    const KnownSteps known = series_of(steps_, key);
    if (known.size() == 0) continue;
    const double value = known.value.back();
    text += str("  ", words, " ", digits < 0 ? measure_text(value) : fixed(value, digits));
  }
  return text;
}

void TrainView::list_alarms() const {
  for (const FoundSign& sign : alarms_) {
    log(str("alarm  ", sign.row->title, ": ", sign.what, ". ", sign.advice()));
  }
  const KnownSteps known = series_of(steps_, metric::val_accuracy.key);
  const bool several = known.size() > 1 && known.step[0] == 0;
  if (several && known.value[0] > std::ranges::max(std::span(known.value).subspan(1))) {
    log(str("step 0 was best: validation accuracy was ", percent(known.value[0]),
            " before training, and no later one reached it"));
  }
}

namespace {

// A line every few seconds (base/terminal/log) and at the end, and one for each alarm when it begins and when it ends.
class PlainProgress final : public TrainObserver {
 public:
  void begin(const TrainStart& start) override {
    view_.begin(start);
    progress_.emplace(start.title, view_.total(), view_.unit(), view_.done());
    for (const FoundSign& sign : view_.alarms()) said_.insert(sign.row->title);  // before this start
  }
  void phase(const std::string&, const std::string& detail) override {
    if (!detail.empty()) progress_->update(view_.done(), "  " + detail);
  }
  void step(int64_t step, StepRow metrics) override {
    view_.add(step, metrics);
    say_alarms(step);
    if (step > 0) progress_->update(view_.done(), view_.numbers());
  }
  void end() override {
    progress_->finish(view_.numbers());
    view_.list_alarms();
  }

 private:
  void say_alarms(int64_t step) {
    std::set<std::string> now;
    for (const FoundSign& sign : view_.alarms()) {
      const std::string& title = sign.row->title;
      now.insert(title);
      if (!said_.contains(title)) log(str("alarm  ", title, " from step ", step, ": ", sign.what));
    }
    for (const std::string& title : said_) {
      if (!now.contains(title)) log(str("alarm  ", title, " is over, at step ", step));
    }
    said_ = std::move(now);
  }

  TrainView view_;
  std::optional<Progress> progress_;
  std::set<std::string> said_;  // titles of the active alarms
};

}  // namespace

ProgressMode parse_progress_mode(const std::string& word) {
  if (word.empty() || word == "plain") return ProgressMode::plain;
  if (word == "none") return ProgressMode::none;
  throw Error(ErrorKind::usage, str("--progress ", printable(word), ": expected plain or none"));
}

std::unique_ptr<TrainObserver> make_train_observer(ProgressMode mode) {
  if (mode == ProgressMode::plain) return std::make_unique<PlainProgress>();
  return std::make_unique<TrainObserver>();
}

}  // namespace ucas
