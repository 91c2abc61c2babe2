#include "progress/train_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <mutex>
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

constexpr size_t kLabel = 11;        // cells of the words on the left
constexpr size_t kRecent = 10;       // steps over which the pace is averaged
constexpr double kDrawPause = 0.25;  // seconds

Inked label(const char* words) { return {str(" ", pad_right(words, kLabel)), Ink::faint}; }

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
std::vector<FoundSign> standing(const StepTable& steps) {
  std::vector<FoundSign> found = find_signs(steps).found;
  std::erase_if(found, [](const FoundSign& sign) { return sign.note; });
  return found;
}

}  // namespace

void TrainView::begin(const TrainStart& start, double now) {
  start_ = start;
  step_ = start.step;
  done_ = by_prompts() ? start.prompts : start.step;
  began_ = now;
  finished_ = {{now, done_}};
  if (start.step == 0 || start.supervised) return;
  try {
    steps_ = read_run(start.run).steps;
  } catch (const Error&) {
    steps_ = {};
  }
  alarms_ = standing(steps_);
}

void TrainView::add(int64_t step, StepRow metrics, const TrainSample* sample, double now) {
  const size_t before = steps_.step.size();
  steps_.step.push_back(static_cast<double>(step));
  for (const auto& [key, value] : metrics) {
    auto& column = steps_.column[key];
    column.resize(before, kUnknown);
    column.push_back(std::isfinite(value) ? value : kUnknown);
    if (!std::isfinite(value)) steps_.not_finite.emplace_back(key, static_cast<double>(step));
  }
  for (auto& [key, column] : steps_.column) column.resize(before + 1, kUnknown);
  alarms_ = standing(steps_);
  if (sample != nullptr) sample_ = *sample;
  if (step == 0) finished_.clear();  // the validation before training says nothing about the pace of steps
  step_ = step;
  const double prompts = value_in(metrics, metric::training_prompts.key);
  if (!by_prompts()) done_ = step;
  if (by_prompts() && !std::isnan(prompts)) done_ = static_cast<int64_t>(prompts);
  finished_.emplace_back(now, done_);
  if (finished_.size() > kRecent + 1) finished_.erase(finished_.begin());
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

InkedLine TrainView::progress(size_t width, bool utf8, double now) const {
  const double share = static_cast<double>(done_) / static_cast<double>(std::max<int64_t>(1, total()));
  const char* unit = start_.supervised ? "update" : "step";
  std::string text = str("  ", fixed(std::floor(100 * share), 0), " %"), rest;
  const auto [since, from] = finished_.front();
  const auto [last, to] = finished_.back();
  if (last > since && finished_.size() > 1) {
    const double pace = (last - since) / static_cast<double>(finished_.size() - 1);
    text += pace >= 1 ? str("   ", fixed(pace, pace < 10 ? 1 : 0), " s/", unit)
                      : str("   ", fixed(1 / pace, 1), " ", unit, "s/s");
    const double left = static_cast<double>(total() - done_) * (last - since) / static_cast<double>(to - from);
    if (!ended && to > from) rest = "   ETA " + human_seconds(std::max(0.0, left - (now - last)));
  }
  text += str("   elapsed ", human_seconds(now - began_), rest);
  const std::string of = by_prompts() ? "" : "/" + grouped(start_.total_steps);
  constexpr size_t kWords = 76;  // of all other words at their usual longest, so that the bar keeps its length
  const size_t bar = std::clamp<size_t>(width > kWords ? width - kWords : 0, 8, 36);
  return {{str(" ", unit, " ", grouped(step_), of, "  "), Ink::strong},
          {progress_bar(share, bar, utf8), Ink::good},
          {text},
          {ended || detail.empty() ? "" : "   " + detail, Ink::faint}};
}

// What the run is judged by: two small charts in one line.
InkedLine TrainView::curves(size_t width, bool utf8) const {
  InkedLine line;
  const Metric* loss[] = {&metric::sft_loss, &metric::sft_grad_norm};
  const Metric* reward[] = {&metric::critic_score.mean, &metric::val_accuracy};
  for (const Metric* metric : start_.supervised ? loss : reward) {
    const size_t room = std::max<size_t>(width / 2, kLabel + 11) - kLabel - 3;
    const std::string chart = sparkline(series_of(steps_, metric->key).value, room, utf8);
    line.push_back(label(metric->label));
    line.push_back({str(pad_right("", room - std::min(room, cells(chart))), chart, "  ")});
  }
  return line;
}

InkedLine TrainView::alarm() const {
  if (alarms_.empty()) return {label("alarms"), {"none", Ink::faint}};
  const std::string more = alarms_.size() > 1 ? str("(+", alarms_.size() - 1, ")  ") : "";
  return {label("alarms"), {str(more, alarms_[0].row->title, ": ", alarms_[0].what), Ink::alarm}};
}

InkedLine TrainView::sample(size_t width, bool utf8) const {
  const TrainSample& s = sample_;
  if (s.verdict.empty()) return {label("sample"), {"-", Ink::faint}};
  const bool right = s.verdict == "equal";
  const std::string read = s.answer.empty() ? "" : ", read as " + fit(visible(s.answer.substr(0, 400), utf8), 24);
  const std::string facts = str(read, ", ", grouped(s.tokens), " tokens", s.finished ? "" : ", cut at the limit",
                                ", reward ", measure_text(s.reward), ": ");
  const std::string words = right ? "right" : s.verdict == "unequal" ? "wrong" : s.verdict;
  InkedLine line = {label("sample"), {words, right ? Ink::good : Ink::bad}, {facts}};
  const size_t taken = cells(plain_text(line));
  line.push_back({fit_middle(visible(trim(s.response), utf8), width > taken + 8 ? width - taken : 8), Ink::faint});
  return line;
}

std::vector<InkedLine> TrainView::lines(TerminalSize size, bool utf8, double now) const {
  const size_t width = size.columns > 1 ? size.columns - 1 : 1;
  const std::string title = visible(start_.title, utf8);
  const size_t rest = width > cells(title) + 4 ? width - cells(title) - 4 : 0;
  std::vector<InkedLine> lines = {
      {{" " + title, Ink::strong}, {"  " + fit_middle(visible(start_.run, utf8), rest), Ink::faint}},
      progress(width, utf8, now),
      curves(width, utf8),
      {label("numbers"), {std::string(trim(numbers()))}},
      alarm()};
  if (!start_.supervised) lines.insert(lines.end() - 1, sample(width, utf8));
  if (lines.size() >= size.rows) lines.resize(size.rows - 1);
  for (InkedLine& line : lines) line = fit(line, width);
  return lines;
}

namespace {

// A line every few seconds (base/terminal/log) and at the end, and one for each alarm when it begins and when it ends.
class PlainProgress final : public TrainObserver {
 public:
  void begin(const TrainStart& start) override {
    view_.begin(start, 0);
    progress_.emplace(start.title, view_.total(), view_.unit(), view_.done());
    for (const FoundSign& sign : view_.alarms()) said_.insert(sign.row->title);  // before this start
  }
  void phase(const std::string&, const std::string& detail) override {
    if (!detail.empty()) progress_->update(view_.done(), "  " + detail);
  }
  void step(int64_t step, StepRow metrics, const TrainSample* sample) override {
    view_.add(step, metrics, sample, 0);
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
  std::set<std::string> said_;  // titles of the alarms that stand
};

volatile std::sig_atomic_t continued = 0;  // after Ctrl-Z the shell has written below the block

void write_stderr(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n <= 0) return;  // a closed terminal must not stop a run
    done += static_cast<size_t>(n);
  }
}

// A few lines that rewrite themselves in place, at most four times a second, with messages above them.
class Dashboard final : public TrainObserver {
 public:
  ~Dashboard() override { close(); }  // leaves the block as it was last, drawn once more
  void begin(const TrainStart& start) override {
    view_.begin(start, now_seconds());
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      std::lock_guard lock(mutex_);
      block_.print_above(str(level != LogLevel::info ? "warning: " : "", message), terminal_size(STDERR_FILENO));
    });
    std::signal(SIGCONT, [](int) { continued = 1; });
    open_ = true;
    draw(true);
  }
  void phase(const std::string& what, const std::string& detail) override {
    view_.detail = detail.empty() ? what : detail;
    draw(false);
  }
  void step(int64_t step, StepRow metrics, const TrainSample* sample) override {
    view_.add(step, metrics, sample, now_seconds());
    draw(false);
  }
  void end() override {
    close();
    view_.list_alarms();
  }

 private:
  void draw(bool at_once) {
    if (!open_ || (!at_once && now_seconds() - drawn_ < kDrawPause)) return;
    const TerminalSize size = terminal_size(STDERR_FILENO);
    std::lock_guard lock(mutex_);
    if (continued != 0) block_.leave();
    continued = 0;
    drawn_ = now_seconds();
    block_.draw(view_.lines(size, utf8_, drawn_), size);
  }
  void close() {
    if (!open_) return;
    view_.ended = true;
    draw(true);
    open_ = false;
    std::signal(SIGCONT, SIG_DFL);
    set_log_sink(std::move(before_));
  }

  TrainView view_;
  std::mutex mutex_;  // of the block: any thread may log
  LiveBlock block_{write_stderr, colors_wanted()};
  bool utf8_ = locale_is_utf8(), open_ = false;
  double drawn_ = 0;
  LogSink before_;
};

constexpr const char* kModes[] = {"auto", "plain", "dashboard", "none"};  // in order of ProgressMode

}  // namespace

ProgressMode parse_progress_mode(const std::string& word) {
  if (word.empty()) return ProgressMode::automatic;
  const auto* mode = std::ranges::find(kModes, word);
  if (mode != std::end(kModes)) return static_cast<ProgressMode>(mode - kModes);
  throw Error(ErrorKind::usage, str("--progress ", printable(word), ": expected auto, plain, dashboard or none"));
}

std::unique_ptr<TrainObserver> make_train_observer(ProgressMode mode) {
  if (mode == ProgressMode::automatic) mode = stderr_is_terminal() ? ProgressMode::dashboard : ProgressMode::plain;
  if (mode == ProgressMode::dashboard) return std::make_unique<Dashboard>();
  if (mode == ProgressMode::plain) return std::make_unique<PlainProgress>();
  return std::make_unique<TrainObserver>();
}

}  // namespace ucas
