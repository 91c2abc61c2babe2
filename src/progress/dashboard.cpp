#include "progress/dashboard.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>

#include "base/str.h"
#include "core/metrics.h"
#include "results/table.h"

namespace ucas {

namespace {

constexpr size_t kLabel = 11;       // cells of the words on the left
constexpr size_t kTwoColumns = 84;  // from this width on, curves stand side by side
constexpr size_t kRecent = 10;      // steps over which pace and seconds are averaged
constexpr double kSampleStays = 5;  // seconds, so that it can be read
constexpr double kDrawPause = 0.25, kIdlePause = 1.0;
constexpr const char* kValidation = RunHistory::kValidation;

volatile std::sig_atomic_t continued = 0;  // after Ctrl-Z the shell has written below the block

void write_stderr(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n <= 0) return;  // a closed terminal must not stop a run
    done += static_cast<size_t>(n);
  }
}

Inked label(const char* words) { return {str(" ", pad_right(words, kLabel)), Ink::faint}; }

constexpr const Metric* kSeconds[] = {
    &metric::timing_gen,    &metric::timing_reward,        &metric::timing_old_log_prob, &metric::timing_ref,
    &metric::timing_values, &metric::timing_update_critic, &metric::timing_prm,          &metric::timing_teacher,
    &metric::timing_adv,    &metric::timing_update_actor,  &metric::timing_testing,
};

}  // namespace

void DashboardState::begin(const TrainStart& start, double now) {
  start_ = start;
  step_ = start.step;
  began_ = now;
  finished_ = {now};
  prompts_ = static_cast<double>(start.prompts);
  history_.begin(start);
}

void DashboardState::add(int64_t step, StepRow metrics, const TrainSample* sample, double now) {
  history_.add(step, metrics);
  if (double prompts = value_in(metrics, metric::training_prompts.key); !std::isnan(prompts)) prompts_ = prompts;
  if (step > 0) {
    step_ = step;
    finished_.push_back(now);
    if (finished_.size() > kRecent + 1) finished_.erase(finished_.begin());
  } else {
    finished_ = {now};  // the validation before training says nothing about the pace of steps
  }
  if (sample == nullptr) return;
  newest_ = *sample;
  if (has_sample_ && now - sampled_ < kSampleStays) return;
  sample_ = *sample;
  sampled_ = now;
  has_sample_ = true;
}

double DashboardState::pace() const {
  if (finished_.size() < 2) return std::nan("");
  return (finished_.back() - finished_.front()) / static_cast<double>(finished_.size() - 1);
}

double DashboardState::share_done() const {
  bool by_prompts = start_.total_prompts > 0;
  double whole = static_cast<double>(std::max<int64_t>(1, by_prompts ? start_.total_prompts : start_.total_steps));
  return (by_prompts ? prompts_ : static_cast<double>(step_)) / whole;
}

double DashboardState::steps_left() const {
  if (start_.total_prompts == 0) return static_cast<double>(start_.total_steps - step_);
  double of_step = step_ > 0 ? prompts_ / static_cast<double>(step_) : 1;
  return of_step > 0 ? (static_cast<double>(start_.total_prompts) - prompts_) / of_step : 0;
}

InkedLine DashboardState::head(size_t width, bool utf8) const {
  std::string title = visible(start_.title, utf8);
  size_t rest = width > cells(title) + 4 ? width - cells(title) - 4 : 0;
  return {{" " + title, Ink::strong}, {"  " + fit_middle(visible(start_.run, utf8), rest), Ink::faint}};
}

InkedLine DashboardState::progress(size_t width, bool utf8, double now) const {
  double share = share_done(), seconds = pace();
  std::string text = str("  ", fixed(std::floor(100 * share), 0), " %");
  if (std::isfinite(seconds) && seconds > 0) {
    text += seconds >= 1 ? str("   ", fixed(seconds, seconds < 10 ? 1 : 0), " s/", unit())
                         : str("   ", fixed(1 / seconds, 1), " ", unit(), "s/s");
  }
  text += "   elapsed " + human_seconds(now - began_);
  if (!ended && std::isfinite(seconds)) {
    double left = seconds * steps_left() - (now - finished_.back());
    text += "   ETA " + human_seconds(std::max(0.0, left));
  }
  bool by_prompts = start_.total_prompts > 0;  // then the number of steps is unknown
  std::string steps = str(" ", unit(), " ", grouped(step_), by_prompts ? "" : "/" + grouped(start_.total_steps), "  ");
  std::string what = phase.empty() ? "" : str("   ", detail.empty() ? phase : detail);
  constexpr size_t kWords = 76;  // of all other words at their usual longest, so that the bar keeps its length
  size_t bar = std::clamp<size_t>(width > kWords ? width - kWords : 0, 8, 36);
  return {{steps, Ink::strong}, {progress_bar(share, bar, utf8), Ink::good}, {text}, {what, Ink::faint}};
}

InkedLine DashboardState::chart(const Row& row, size_t width, bool utf8) const {
  std::vector<double> values;
  if (const auto* column = history_.steps().find(row.key)) values = *column;
  if (row.key == std::string_view(kValidation))
    std::erase_if(values, [](double v) { return std::isnan(v); });  // every few steps only
  constexpr size_t kValue = 9;
  size_t cells_left = width > kLabel + kValue + 4 ? width - kLabel - kValue - 4 : 8;
  std::string line = sparkline(values, cells_left, utf8);
  std::string gap(cells_left - std::min(cells_left, cells(line)), ' ');
  return {label(row.title),
          {line},
          {gap + pad_left(measure_text(history_.steps().last(row.key)), kValue), Ink::strong},
          {"  "}};
}

std::vector<InkedLine> DashboardState::curves(size_t width, bool utf8) const {
  static const std::vector<Row> kRollouts = {of(metric::critic_score.mean),
                                             of(metric::actor_entropy),
                                             of(metric::response_length.mean),
                                             of(metric::rollout_logprob_diff_max),
                                             {kValidation, metric::val_accuracy.label},
                                             of(metric::actor_grad_norm)};
  static const std::vector<Row> kSupervised = {of(metric::sft_loss), of(metric::sft_grad_norm), of(metric::sft_lr),
                                               of(metric::sft_tokens)};
  const std::span<const Row> rows = start_.supervised ? kSupervised : kRollouts;
  std::vector<InkedLine> lines;
  if (width < kTwoColumns) {
    for (const Row& row : rows.first(std::min<size_t>(5, rows.size()))) lines.push_back(chart(row, width, utf8));
    return lines;
  }
  for (size_t i = 0; i < rows.size(); i += 2) {
    InkedLine line = chart(rows[i], width / 2, utf8);
    for (Inked& part : chart(rows[i + 1], width / 2, utf8)) line.push_back(std::move(part));
    lines.push_back(std::move(line));
  }
  return lines;
}

// Shares of the last steps' time.
InkedLine DashboardState::seconds(size_t width) const {
  const auto* whole_steps = history_.steps().find(metric::timing_step.key);
  auto recent = [&](const std::string& key) {
    const auto* column = history_.steps().find(key);
    double sum = 0;
    if (column == nullptr || whole_steps == nullptr) return sum;
    for (size_t i = column->size() - std::min(column->size(), kRecent); i < column->size(); ++i) {
      bool known = !std::isnan((*column)[i]) && !std::isnan((*whole_steps)[i]);  // the validation before training
      sum += known ? (*column)[i] : 0;                                           // belongs to no step
    }
    return sum;
  };
  double whole = recent(metric::timing_step.key);
  InkedLine line = {label("time")};
  if (!(whole > 0)) return line;
  std::vector<std::pair<double, std::string>> shares;
  for (const Metric* phase : kSeconds) {
    double share = recent(phase->key) / whole;
    if (share >= 0.02) shares.emplace_back(share, phase->label);
  }
  double named = 0;
  for (const auto& [share, words] : shares) named += share;
  if (1 - named >= 0.02) shares.emplace_back(1 - named, "other");
  std::vector<std::string> parts;
  for (const auto& [share, words] : shares) parts.push_back(str(words, " ", percent(share, 0)));
  line.push_back({join(parts, "   ")});
  double speed = history_.steps().last(metric::perf_throughput.key);
  std::string tokens = std::isfinite(speed) ? str("   ", grouped(std::llround(speed)), " tokens/s") : "";
  if (cells(plain_text(line)) + cells(tokens) <= width) line.push_back({tokens, Ink::faint});
  return line;
}

InkedLine DashboardState::alarm() const {
  const std::vector<FoundSign>& alarms = history_.alarms();
  if (alarms.empty()) {
    std::vector<std::string> over;
    for (const FoundSign& sign : history_.over()) over.push_back(sign.row->title);
    return {label("alarms"), {str("none", over.empty() ? "" : str(" (over: ", join(over, ", "), ")")), Ink::faint}};
  }
  std::string more = alarms.size() > 1 ? str("(+", alarms.size() - 1, ")  ") : "";
  return {label("alarms"), {str(more, alarms[0].row->title, ": ", alarms[0].what), Ink::alarm}};
}

std::vector<InkedLine> DashboardState::sample_lines(size_t width, bool utf8) const {
  if (!has_sample_) return {{label("sample"), {"-", Ink::faint}}, {label("")}, {label("")}};
  size_t room = width > kLabel + 3 ? width - kLabel - 3 : 1;
  // Only as much of a long response as can be shown is looked at: its two ends.
  auto shown = [&](const std::string& text) {
    size_t most = 4 * room;
    std::string part = text.size() <= 2 * most ? text : text.substr(0, most) + text.substr(text.size() - most);
    return fit_middle(visible(trim(part), utf8), room);
  };
  const TrainSample& s = ended ? newest_ : sample_;  // the last frame stays, so it shows the newest sample
  bool right = s.verdict == "equal";
  std::string words = right ? "right" : s.verdict == "unequal" ? "wrong" : s.verdict;
  std::string facts =
      str(s.answer.empty() ? "" : ", read as " + fit(visible(s.answer.substr(0, 400), utf8), 24), ", ",
          grouped(s.tokens), " tokens", s.finished ? "" : ", cut at the limit", ", reward ", measure_text(s.reward));
  return {{label("sample"), {str("step ", s.step, ": ")}, {words, right ? Ink::good : Ink::bad}, {facts}},
          {label("  prompt"), {shown(s.question), Ink::faint}},
          {label("  response"), {shown(s.response)}}};
}

std::vector<InkedLine> DashboardState::lines(TerminalSize size, bool utf8, double now) const {
  size_t width = size.columns > 1 ? size.columns - 1 : 1;
  std::vector<InkedLine> sample = sample_lines(width, utf8), lines = {head(width, utf8), progress(width, utf8, now)};
  for (InkedLine& line : curves(width, utf8)) lines.push_back(std::move(line));
  if (!start_.supervised) lines.push_back(seconds(width));
  lines.push_back(alarm());
  if (!start_.supervised && lines.size() + sample.size() < size.rows) {
    lines.insert(lines.end() - 1, sample.begin(), sample.end());
  }
  if (lines.size() >= size.rows) lines.resize(size.rows - 1);
  for (InkedLine& line : lines) line = fit(line, width);
  return lines;
}

// ------------------------------------------------------------------------------------------------------- drawing

Dashboard::Dashboard() : block_(write_stderr, colors_wanted()), utf8_(locale_is_utf8()) {}

Dashboard::~Dashboard() { close(false); }

void Dashboard::begin(const TrainStart& start) {
  {
    std::lock_guard lock(mutex_);
    state_.begin(start, now_seconds());
    open_ = true;
    draw(true);
  }
  before_ = set_log_sink([this](LogLevel level, const std::string& message) {
    std::lock_guard lock(mutex_);
    block_.print_above(str(level != LogLevel::info ? "warning: " : "", message), terminal_size(STDERR_FILENO));
  });
  std::signal(SIGCONT, [](int) { continued = 1; });
  thread_ = std::thread([this] { watch(); });
}

void Dashboard::phase(const std::string& what, const std::string& detail) {
  std::lock_guard lock(mutex_);
  state_.phase = what;
  state_.detail = detail;
  draw(false);
}

void Dashboard::step(int64_t step, StepRow metrics, const TrainSample* sample) {
  std::lock_guard lock(mutex_);
  state_.add(step, metrics, sample, now_seconds());
  draw(false);
}

void Dashboard::end() {
  close(true);
  list_alarms(state_.history());
}

// Draws what came too soon after the last drawing, the clock, and a window of another size.
void Dashboard::watch() {
  std::unique_lock lock(mutex_);
  while (open_) {
    wake_.wait_for(lock, std::chrono::duration<double>(kDrawPause));
    if (continued != 0) {
      continued = 0;
      block_.leave();
    }
    if (open_ && (dirty_ || now_seconds() - drawn_ >= kIdlePause)) draw(false);
  }
}

void Dashboard::draw(bool now) {
  dirty_ = true;
  if (!open_ || (!now && now_seconds() - drawn_ < kDrawPause)) return;
  TerminalSize size = terminal_size(STDERR_FILENO);
  block_.draw(state_.lines(size, utf8_, now_seconds()), size);
  drawn_ = now_seconds();
  dirty_ = false;
}

void Dashboard::close(bool finished) {
  {
    std::lock_guard lock(mutex_);
    if (!open_) return;
    state_.ended = true;
    state_.detail = "";
    if (finished) state_.phase = "";
    draw(true);
    open_ = false;
  }
  wake_.notify_all();
  thread_.join();
  std::signal(SIGCONT, SIG_DFL);
  set_log_sink(std::move(before_));
}

}  // namespace ucas
