#include "report/signs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "core/metrics.h"
#include "results/table.h"

namespace ucas {

namespace {

constexpr const char* kTable = "report/assets/signs.toml";
constexpr size_t kFewestSteps = 3;  // for a comparison with the first
constexpr size_t kShownNumbers = 4;

std::vector<SignRow> read_table() {
  const std::vector<Setting> all = parse_toml(std::string(embedded(kTable).value()), kTable);
  std::vector<SignRow> rows;
  size_t read = 0;
  for (const char* name : names(Sign{})) {
    const std::string begin = str(name, ".");
    std::vector<Setting> own;
    for (const Setting& setting : all) {
      if (!setting.key.starts_with(begin)) continue;
      own.push_back(setting);
      own.back().key = setting.key.substr(begin.size());
    }
    read += own.size();
    SignRow& row = rows.emplace_back();
    row.sign = static_cast<Sign>(rows.size() - 1);
    ucas::apply(row, own);
  }
  UCAS_CHECK(read == all.size(), "each table of signs.toml is a sign's");
  return rows;
}

bool is_share_metric(const std::string& key) {
  const Metric* metric = find_metric(key);
  return metric != nullptr && metric->unit == Unit::share;
}

std::string limit_text(const SignRule& rule) {
  return is_share_metric(rule.key) ? percent(rule.limit, 0) : str(rule.limit);
}

// What is held against the rule at each known step, and whether it is beyond.
struct Held {
  std::vector<double> step, value;
  std::vector<char> beyond;
  size_t size() const { return step.size(); }
  bool active() const { return size() > 0 && beyond.back() != 0; }
};

Held held_against(const SignRule& rule, const KnownSteps& s) {
  Held held{s.step, {}, {}};
  size_t wrong = 0;  // steps in a row without a right answer
  for (size_t i = 0; i < s.size(); ++i) {
    const double v = s.value[i];
    if (rule.kind == SignRuleKind::never_right) {
      wrong = v > 0 ? 0 : wrong + 1;
      held.value.push_back(static_cast<double>(wrong));
      held.beyond.push_back(static_cast<double>(wrong) >= rule.limit);
    } else if (rule.kind == SignRuleKind::under_first) {
      held.value.push_back(v);
      held.beyond.push_back(i + 1 >= kFewestSteps && v < rule.limit * s.value[0]);
    } else {
      held.value.push_back(std::fabs(s.trailing(i, kSignWindow)));
      held.beyond.push_back(held.value.back() > rule.limit);
    }
  }
  return held;
}

// The first index of the stretch up to the end, as the values themselves say: a mean of ten steps is late.
size_t began(const SignRule& rule, const KnownSteps& s, const Held& held) {
  const auto passes = [&](size_t i) {
    switch (rule.kind) {
      case SignRuleKind::above:
        return std::fabs(s.value[i]) > rule.limit;
      case SignRuleKind::under_first:
        return s.value[i] < rule.limit * s.value[0];
      default:
        return !(s.value[i] > 0);
    }
  };
  size_t i = held.size() - 1;
  while (i > 0 && held.beyond[i - 1] != 0) --i;
  while (i > 0 && passes(i - 1)) --i;
  while (i + 1 < s.size() && !passes(i)) ++i;
  return i;
}

bool was_graded(const StepTable& table) {
  return std::ranges::any_of(std::array{metric::verifier_unequal_share.key, metric::verifier_unparseable_share.key},
                             [&](const char* key) {
                               const KnownSteps s = series_of(table, key);
                               return s.size() > 0 && s.after(0, kSignWindow) > 0;
                             });
}

std::string words_of_active(const SignRule& rule, const KnownSteps& s, const Held& held, const StepTable& table) {
  const std::string steps = str("mean of the last ", std::min(s.size(), kSignWindow), " steps");
  if (rule.kind == SignRuleKind::under_first) {
    return str(rule.words, " from ", measure_text(s.value[0]), " to ", measure_text(s.value.back()), ", below ",
               percent(rule.limit, 0), " of its start from step ", s.step[began(rule, s, held)], " on");
  }
  if (rule.kind == SignRuleKind::never_right) {
    const KnownSteps unequal = series_of(table, metric::verifier_unequal_share.key);
    return str("no response of the last ", held.value.back(), " steps was right, though an answer was read in ",
               unequal.size() == 0 ? "some" : percent(unequal.after(0, kSignWindow)));
  }
  const double value = held.value.back();
  return is_share_metric(rule.key)
             ? str(percent(value), " of ", rule.words, " (", steps, "; threshold ", limit_text(rule), ")")
             : str(measure_text(value), " ", rule.words, " (", steps, "; threshold ", limit_text(rule), ")");
}

class SignFinder {
 public:
  explicit SignFinder(const StepTable& table) : table_(table) {}

  Signs find() {
    for (const SignRow& row : sign_rows()) look(row);
    return std::move(made_);
  }

 private:
  void look(const SignRow& row) {
    bool seen = false;
    std::vector<FoundSign> found;
    for (const SignRule& rule : row.rules) {
      if (rule.kind == SignRuleKind::none) continue;
      seen = try_rule(rule, found) || seen;
    }
    if (!seen) return made_.blind.push_back(&row);
    if (found.empty()) return made_.quiet.push_back(&row);
    FoundSign& sign = made_.found.emplace_back(found[0]);
    sign.row = &row;
    sign.note = !row.easy.empty() && has_risen(table_);
    for (const FoundSign& other : std::span(found).subspan(1)) {
      sign.what += "; " + other.what;
      sign.since = std::min(sign.since, other.since);
    }
    if (row.sign == Sign::dead_groups) sign.what += solved_words();
  }

  // Whether the run has its numbers.
  bool try_rule(const SignRule& rule, std::vector<FoundSign>& active) {
    if (rule.kind == SignRuleKind::not_finite) return not_finite(rule, active);
    const KnownSteps s = series_of(table_, rule.key);
    if (s.size() == 0 || (rule.kind == SignRuleKind::under_first && s.size() < kFewestSteps)) return false;
    if (rule.kind == SignRuleKind::ever || rule.kind == SignRuleKind::counter) return once(rule, s, active);
    if (rule.kind == SignRuleKind::fell) return fell(rule, active);
    if (rule.kind == SignRuleKind::never_right && !was_graded(table_)) return true;
    const Held held = held_against(rule, s);
    if (!held.active()) return true;
    active.push_back({.rule = &rule, .since = s.step[began(rule, s, held)]});
    active.back().what = words_of_active(rule, s, held, table_);
    return true;
  }

  bool not_finite(const SignRule& rule, std::vector<FoundSign>& active) const {
    if (table_.not_finite.empty()) return !table_.empty();
    std::vector<std::string> keys;
    std::set<std::string> seen;
    for (const auto& [key, step] : table_.not_finite) {
      if (seen.insert(key).second && keys.size() < kShownNumbers)
        keys.push_back(str(printable(key), " at step ", step));
    }
    if (seen.size() > keys.size()) keys.push_back(str(seen.size() - keys.size(), " other numbers"));
    active.push_back({.rule = &rule, .since = table_.not_finite[0].second, .at_once = true});
    active.back().what = "not finite: " + join(keys, ", ");
    return true;
  }

  static bool once(const SignRule& rule, const KnownSteps& s, std::vector<FoundSign>& active) {
    const bool counts = rule.kind == SignRuleKind::counter;
    size_t first = s.size(), worst = 0, times = 0;
    for (size_t i = 0; i < s.size(); ++i) {
      if (!(std::fabs(s.value[i]) > rule.limit)) continue;
      first = std::min(first, i);
      ++times;
      if (std::fabs(s.value[i]) > std::fabs(s.value[worst])) worst = i;
    }
    if (times == 0) return true;
    active.push_back({.rule = &rule, .since = s.step[first], .at_once = !counts});
    const double most = std::fabs(s.value[worst]);
    active.back().what = counts
                             ? str(most, " ", rule.words)
                             : str(rule.words, " differ by up to ", measure_text(most), " (step ", s.step[worst],
                                   "); beyond ", measure_text(rule.limit), " in ", times, " of ", s.size(), " steps");
    return true;
  }

  bool fell(const SignRule& rule, std::vector<FoundSign>& active) const {
    const Trend trend = trend_of(table_, rule.key);
    if (trend.course == Course::unknown) return false;
    if (trend.course != Course::fell) return true;
    active.push_back({.rule = &rule, .since = trend.since});
    active.back().what = str(rule.words, " fell from ", percent(trend.best), " (its best, at step ", trend.best_step,
                             ") to ", percent(trend.last), ", since step ", trend.since);
    return true;
  }

  std::string solved_words() const {
    const KnownSteps all = series_of(table_, metric::train_solve_all.key),
                     none = series_of(table_, metric::train_solve_none.key);
    if (all.size() == 0 || none.size() == 0) return "";
    return all.after(0, kSignWindow) >= none.after(0, kSignWindow)
               ? "; most are solved by every response: the task has become too easy"
               : "; most are solved by no response: the task is too hard for this model";
  }

  const StepTable& table_;
  Signs made_;
};

std::string when_of(const SignRule& rule) {
  const Metric* metric = find_metric(rule.key);
  const std::string key = str("`", rule.key, "`");
  const std::string unit = metric == nullptr || is_share_metric(rule.key) ? "" : name_of(metric->unit);
  const std::string limit = str(limit_text(rule), unit.empty() ? "" : " ", unit);
  switch (rule.kind) {
    case SignRuleKind::above:
      return str("mean of the last ", kSignWindow, " ", key, " above ", limit);
    case SignRuleKind::under_first:
      return str("the last ", key, " below ", percent(rule.limit, 0), " of the first");
    case SignRuleKind::ever:
      return str(key, " of a step beyond ", limit);
    case SignRuleKind::counter:
      return str(key, " above 0");
    case SignRuleKind::never_right:
      return str(key, " 0 in the last ", rule.limit, " steps or more, though responses were graded");
    case SignRuleKind::not_finite:
      return "any `null`";
    case SignRuleKind::fell:
      return str("mean `", rule.key, "` fell from its best");
    case SignRuleKind::none:
      break;
  }
  return "";
}

}  // namespace

void SignRule::fields(Fields& f) {
  f.choice("kind", kind, "how the number is judged");
  f.field("key", key, "metric of steps.jsonl");
  f.field("words", words, "what is counted, in words");
  f.field("limit", limit, "value at which the metric is a sign");
}

void SignRow::fields(Fields& f) {
  f.field("title", title, "name of the sign");
  f.field("meaning", meaning, "what the sign usually means and what to look at");
  f.field("easy", easy, "what to say while the reward has risen");
  f.field("also", also, "metrics that are shown with the sign");
  f.field("remedies", tries, "options to try, OPTION: HOW");
  f.choice("responses", responses, "stored responses that show the sign");
  f.section("rule", rules[0]);
  f.section("rule2", rules[1]);
  f.section("rule3", rules[2]);
}

std::string SignRow::advice() const { return str(meaning, " Try ", join(tries, "; "), "."); }

std::span<const SignRow> sign_rows() {
  static const std::vector<SignRow> rows = read_table();
  return rows;
}

std::string when_of(const SignRow& row) {
  std::vector<std::string> texts;
  for (const SignRule& rule : row.rules) {
    if (rule.kind != SignRuleKind::none) texts.push_back(when_of(rule));
  }
  return str(join(texts, ", or "), row.easy.empty() ? "" : "; a note while the reward has risen and stays");
}

Signs find_signs(const StepTable& table) { return SignFinder(table).find(); }

double KnownSteps::trailing(size_t i, size_t count) const {
  const size_t first = i + 1 > count ? i + 1 - count : 0;
  return mean_of(std::span(value).subspan(first, i + 1 - first));
}

double KnownSteps::before(size_t i, size_t count) const { return i == 0 ? kUnknown : trailing(i - 1, count); }

double KnownSteps::after(size_t i, size_t count) const { return trailing(size() - 1, std::min(count, size() - i)); }

KnownSteps series_of(const StepTable& table, const std::string& key) {
  KnownSteps series;
  const std::vector<double> values = table.mean_over(key);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    series.step.push_back(table.step[i]);
    series.value.push_back(values[i]);
  }
  return series;
}

namespace {

constexpr size_t kFewestValues = 4, kWidestWindow = 10;
constexpr double kLeastDifference = 0.03, kErrors = 4;  // of a difference of two means

// Of one value, estimated from its neighbours: a slow trend is no noise, and the largest jump is none either.
double noise_of(const KnownSteps& series) {
  double sum = 0, largest = 0;
  for (size_t i = 1; i < series.size(); ++i) {
    const double square = std::pow(series.value[i] - series.value[i - 1], 2);
    sum += square;
    largest = std::max(largest, square);
  }
  return std::sqrt((sum - largest) / (2 * static_cast<double>(series.size() - 2)));
}

// Validations: the last against the first.
void judge_validations(const StepTable& table, const KnownSteps& series, Trend& trend) {
  if (series.size() < 2 || !trend.key.starts_with("val-core/")) return;
  double problems = 0;
  for (const std::string& key : table.fitting(metric::val_problems.key)) {
    if (const double count = table.last(key); std::isfinite(count)) problems += count;
  }
  trend.first = series.value.front();
  trend.last = series.value.back();
  trend.first_step = series.step.front();
  trend.last_step = series.step.back();
  const auto best = std::ranges::max_element(series.value) - series.value.begin();
  trend.best = series.value[static_cast<size_t>(best)];
  trend.best_step = series.step[static_cast<size_t>(best)];
  if (problems < 1) return;
  const auto shrunk = [&](double share) { return (share * problems + 1) / (problems + 2); };
  const double a = shrunk(trend.first), b = shrunk(trend.last);
  const double half = 1.96 * std::sqrt((a * (1 - a) + b * (1 - b)) / (problems + 2));
  trend.low = b - a - half;
  trend.high = b - a + half;
  trend.course = trend.low > 0 ? Course::rose : trend.high < 0 ? Course::fell : Course::flat;
  if (trend.course != Course::fell) return;
  size_t i = series.size() - 1;
  while (i > 0 && series.value[i - 1] < (trend.first + trend.last) / 2) --i;
  trend.since = series.step[i];
}

}  // namespace

Trend trend_of(const StepTable& table, const std::string& key) {
  Trend trend;
  trend.key = key;
  const KnownSteps series = series_of(table, key);
  if (series.size() < kFewestValues) {
    judge_validations(table, series, trend);
    return trend;
  }
  const size_t width = std::clamp<size_t>(series.size() / 5, 1, kWidestWindow);
  trend.first = series.trailing(width - 1, width);
  trend.last = series.trailing(series.size() - 1, width);
  size_t best = width - 1;
  for (size_t i = width - 1; i < series.size(); ++i) {
    if (series.trailing(i, width) >= series.trailing(best, width)) best = i;
  }
  trend.best = series.trailing(best, width);
  trend.best_step = series.step[best];
  const double least =
      std::max(kLeastDifference, kErrors * noise_of(series) * std::sqrt(2 / static_cast<double>(width)));
  if (trend.best - trend.last > least) {
    trend.course = Course::fell;
    size_t i = series.size();
    while (i > best + 1 && series.value[i - 1] < trend.best - least / 2) --i;
    trend.since = series.step[std::min(i, series.size() - 1)];
  } else {
    trend.course = trend.last - trend.first > least ? Course::rose : Course::flat;
    Trend ends{.key = key};  // scatter hides no validation below where it began
    judge_validations(table, series, ends);
    if (ends.course == Course::fell) return ends;
  }
  return trend;
}

bool has_risen(const StepTable& table) {
  bool rose = false;
  for (const char* key : kJudged) {
    const Course course = trend_of(table, key).course;
    if (course == Course::fell) return false;
    rose = rose || course == Course::rose;
  }
  return rose;
}

}  // namespace ucas
