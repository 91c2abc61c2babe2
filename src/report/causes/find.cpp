#include "report/causes/find.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "core/metrics.h"
#include "records/run/run_directory.h"

namespace ucas {

namespace {

constexpr size_t kFewestForTrend = 6, kFewestForSpike = 5, kSpikeMemory = 50;
constexpr double kAccuracyGain = 0.02, kHardlyRight = 0.1, kMostlyPaid = 0.5;

bool happens_once(CauseRule rule) { return rule == CauseRule::ever || rule == CauseRule::spike; }

// The first index of the stretch up to the end in which all values pass; none if the trailing mean does not.
template <class Passes>
std::optional<size_t> stands_since(const KnownSteps& s, size_t fewest, Passes passes, size_t window = kCauseWindow) {
  if (s.size() < fewest || s.size() == 0 || !passes(s.trailing(s.size() - 1, window))) return std::nullopt;
  size_t i = s.size() - 1;
  while (i > 0 && passes(s.trailing(i - 1, window))) --i;
  while (i > 0 && passes(s.value[i - 1])) --i;  // the mean of ten steps is late
  while (i + 1 < s.size() && !passes(s.value[i])) ++i;
  return i;
}

std::optional<size_t> spike_at(const KnownSteps& s, double times, double floor) {
  for (size_t i = kFewestForSpike; i < s.size(); ++i) {
    const size_t first = i > kSpikeMemory ? i - kSpikeMemory : 0;
    const double most = std::ranges::max(std::span(s.value).subspan(first, i - first));
    if (s.value[i] > times * std::max(most, 0.0) && s.value[i] > floor && most > 0) return i;
  }
  return std::nullopt;
}

double first_mean(const KnownSteps& s) { return s.trailing(std::clamp<size_t>(s.size() / 4, 1, kCauseWindow) - 1, 10); }

}  // namespace

std::optional<size_t> began(const CauseKind& kind, const KnownSteps& s) {
  const double limit = kind.limit;
  const auto first_where = [&](auto passes) -> std::optional<size_t> {
    const auto found = std::ranges::find_if(s.value, passes);
    if (found == s.value.end()) return std::nullopt;
    return static_cast<size_t>(found - s.value.begin());
  };
  switch (kind.rule) {
    case CauseRule::above:
      return stands_since(s, 1, [&](double v) { return v > limit; });
    case CauseRule::below:
      return stands_since(s, 3, [&](double v) { return v < limit; });
    case CauseRule::over_first: {
      if (s.size() < kFewestForTrend) return std::nullopt;
      const double bound = std::max(limit * first_mean(s), first_mean(s) + kind.floor);
      return stands_since(s, kFewestForTrend, [&](double v) { return v > bound; });
    }
    case CauseRule::under_first: {
      if (s.size() < 3) return std::nullopt;
      const double bound = limit * s.value[0];
      return stands_since(s, 3, [&](double v) { return v < bound; }, 1);
    }
    case CauseRule::ever:
      return first_where([&](double v) { return std::fabs(v) > limit; });
    case CauseRule::spike:
      return spike_at(s, limit, kind.floor);
    case CauseRule::counter:
      return first_where([](double v) { return v > 0; });
    case CauseRule::special:
      return std::nullopt;
  }
  return std::nullopt;
}

namespace {

// Of each value what is held against the limit, and whether it is beyond. Empty for rules that have no such thing.
std::vector<std::pair<double, bool>> standing(const CauseKind& kind, const KnownSteps& s) {
  std::vector<std::pair<double, bool>> out;
  const bool never_right = kind.title == std::string("No right answer");
  size_t wrong = 0;  // steps in a row without a right answer
  for (size_t i = 0; i < s.size(); ++i) {
    if (never_right) {
      wrong = s.value[i] > 0 ? 0 : wrong + 1;
      out.emplace_back(wrong, static_cast<double>(wrong) >= kind.limit);
    } else if (kind.rule == CauseRule::above) {
      const double mean = s.trailing(i, kCauseWindow);
      out.emplace_back(mean, mean > kind.limit);
    } else if (kind.rule == CauseRule::under_first) {
      out.emplace_back(s.value[i], i >= 2 && s.value[i] < kind.limit * s.value[0]);
    }
  }
  return out;
}

}  // namespace

std::optional<Passed> passed(const CauseKind& kind, const KnownSteps& s) {
  const std::vector<std::pair<double, bool>> at = standing(kind, s);
  if (at.empty() || at.back().second) return std::nullopt;
  size_t last = at.size();
  while (last > 0 && !at[last - 1].second) --last;
  if (last == 0) return std::nullopt;
  size_t first = last - 1;
  while (first > 0 && at[first - 1].second) --first;
  Passed out{s.step[first], s.step[last - 1], at[first].first};
  for (size_t i = first; i < last; ++i) {
    const double value = at[i].first;
    out.most = kind.rule == CauseRule::under_first ? std::min(out.most, value) : std::max(out.most, value);
  }
  return out;
}

namespace {

class CauseFinder {
 public:
  CauseFinder(const RunRecord& run, const std::vector<StoredResponse>& stored) : run_(run), stored_(stored) {
    table_ = run.steps;
    add_stored_columns(table_, stored);
  }

  Causes find() {
    for (const char* key : kJudged) {
      if (!table_.fitting(key).empty()) made_.trends.push_back(trend_of(table_, key));
    }
    for (const CauseKind& kind : cause_kinds()) look(kind);
    const Trend* fallen = made_.fallen();
    const auto rank = [&](const Cause& c) {
      if (c.note) return 3;
      if (c.always) return 1;
      return fallen != nullptr && c.since > fallen->since ? 2 : 0;
    };
    std::ranges::stable_sort(made_.found, [&](const Cause& a, const Cause& b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : a.since < b.since;
    });
    add_tokens();
    return std::move(made_);
  }

 private:
  void look(const CauseKind& kind) {
    const size_t before = made_.found.size();
    if (kind.rule == CauseRule::special ? !special(kind) : !by_rule(kind)) {
      made_.unlooked.emplace_back(kind.title);
    } else if (made_.found.size() == before) {
      made_.quiet.emplace_back(kind.title);
    }
  }

  bool by_rule(const CauseKind& kind) {
    const KnownSteps series = series_of(table_, kind.key);
    if (series.size() == 0) return false;
    if (const auto i = began(kind, series)) {
      add(kind, series.step[*i], happens_once(kind.rule), reading_of(kind));
    } else {
      add_passed(kind, series);
    }
    return true;
  }

  // What was said while the run went on and is over.
  void add_passed(const CauseKind& kind, const KnownSteps& series) {
    const std::optional<Passed> over = passed(kind, series);
    if (!over) return;
    Cause& cause = made_.found.emplace_back();
    cause.kind = &kind;
    cause.since = over->from;
    cause.until = over->to;
    cause.note = true;
  }

  std::string reading_of(const CauseKind& kind) const {
    if (kind.key != std::string(metric::train_dead_groups.key)) return "";
    const KnownSteps all = series_of(table_, metric::train_solve_all.key),
                     none = series_of(table_, metric::train_solve_none.key);
    if (all.size() == 0 || none.size() == 0) return "";
    return dead_groups_reading(all.after(0, kCauseWindow), none.after(0, kCauseWindow));
  }

  Cause& add(const CauseKind& kind, double since, bool at_once = false, std::string what = "") {
    Cause& cause = made_.found.emplace_back();
    cause.kind = &kind;
    cause.since = since;
    cause.at_once = at_once;
    cause.always = !at_once && table_.step.size() > 1 && since <= std::max(1.0, table_.step[0]);
    cause.note = kind.needs_trouble && made_.risen();
    cause.what = std::move(what);
    if (kind.key[0] != '\0') {
      for (const std::string& key : table_.fitting(kind.key)) evidence(cause, key);
    }
    for (const char* key : kind.also) evidence(cause, key);
    cause.shown = shown_by(kind, stored_, since);
    return cause;
  }

  void evidence(Cause& cause, const std::string& key) const {
    for (const Evidence& known : cause.evidence) {
      if (known.key == key) return;
    }
    const KnownSteps s = series_of(table_, key);
    const auto at = static_cast<size_t>(std::ranges::lower_bound(s.step, cause.since) - s.step.begin());
    if (at == s.size()) return;
    cause.evidence.push_back(
        {key, s.before(at, kCauseWindow), cause.at_once ? s.value[at] : s.after(at, kCauseWindow)});
  }

  const Trend* trend(const char* key) const {
    const auto found = std::ranges::find(made_.trends, key, &Trend::key);
    return found == made_.trends.end() || found->course == Course::unknown ? nullptr : &*found;
  }

  // Whether the run has what the cause is looked for in.
  bool special(const CauseKind& kind) {
    const std::string title = kind.title;
    if (title == "No right answer") return never_right(kind);
    if (title == "Numbers that are not finite") return not_finite(kind);
    if (title == "Format paid without an answer") return paid_for_form(kind);
    if (title == "Length growth") return length(kind, true);
    if (title == "Length collapse") return length(kind, false);
    if (title == "Too few groups") return few_groups(kind);
    if (title == "Overfitting") return by_heart(kind);
    UCAS_CHECK(false, "a special cause needs its function in the table");
    return false;
  }

  bool never_right(const CauseKind& kind) {
    const KnownSteps s = series_of(table_, kind.key);
    if (s.size() == 0) return false;
    size_t i = s.size();
    while (i > 0 && !(s.value[i - 1] > 0)) --i;
    if (!was_graded(table_)) return true;
    if (s.size() - i >= static_cast<size_t>(kind.limit)) {
      add(kind, s.step[i]);
    } else {
      add_passed(kind, s);
    }
    return true;
  }

  bool not_finite(const CauseKind& kind) {
    if (table_.not_finite.empty()) return !table_.empty();
    std::vector<std::string> keys;
    std::set<std::string> seen;
    for (const auto& [key, step] : table_.not_finite) {
      if (seen.insert(key).second && keys.size() < 4) keys.push_back(str(printable(key), " at step ", step));
    }
    add(kind, table_.not_finite[0].second, true, join(keys, ", "));
    return true;
  }

  // A part that is no answer rose, or is paid throughout, while right answers stay as rare as they were.
  bool paid_for_form(const CauseKind& kind) {
    const Trend* right = trend(metric::train_accuracy.key);
    bool looked = false;
    for (const std::string& key : table_.fitting(kind.key)) {
      if (key == name_with(metric::rewards_mean, {"answer"}) || key == name_with(metric::rewards_mean, {"command"}))
        continue;
      const Trend paid = trend_of(table_, key);
      if (paid.course == Course::unknown || right == nullptr) continue;
      looked = true;
      const bool gained = right->last - right->first >= kAccuracyGain;
      const bool rose = paid.course == Course::rose && paid.last - paid.first >= kind.limit;
      const bool throughout = paid.last >= kMostlyPaid && right->best < kHardlyRight;
      if (gained || !(rose || throughout)) continue;
      const KnownSteps s = series_of(table_, key);
      size_t i = s.size() - 1;
      while (rose && i > 0 && s.value[i - 1] > (paid.first + paid.last) / 2) --i;
      add(kind, rose ? s.step[i] : s.step[0]);
    }
    return looked;
  }

  bool length(const CauseKind& kind, bool grew) {
    const KnownSteps s = series_of(table_, kind.key);
    const Trend* right = trend(metric::train_accuracy.key);
    if (right == nullptr) right = trend(metric::critic_score.mean.key);
    if (s.size() < kFewestForTrend || right == nullptr) return false;
    const double start = first_mean(s), bound = kind.limit * start;
    const double halfway = (start + bound) / 2;
    const auto passes = [&](double v) { return grew ? v > halfway : v < halfway; };
    const double last = s.trailing(s.size() - 1, kCauseWindow);
    const bool paid = grew ? right->last - right->first >= kAccuracyGain : right->course != Course::fell;
    if ((grew ? last < bound : last > bound) || paid) return true;
    if (const auto i = stands_since(s, kFewestForTrend, passes)) add(kind, s.step[*i]);
    return true;
  }

  bool few_groups(const CauseKind& kind) {
    const double asked = std::strtod(run_.setting("data.train_batch_size").c_str(), nullptr);
    const KnownSteps s = series_of(table_, kind.key);
    if (s.size() == 0 || asked <= 0) return false;
    if (const auto i = stands_since(s, 3, [&](double v) { return v < kind.limit * asked; })) {
      add(kind, s.step[*i], false, str("data.train_batch_size is ", asked));
    }
    return true;
  }

  bool by_heart(const CauseKind& kind) {
    const Trend *right = trend(metric::train_accuracy.key), *validated = trend(kind.key);
    const double passes = table_.last(metric::training_passes.key);
    if (right == nullptr || validated == nullptr || std::isnan(passes)) return false;
    if (validated->course == Course::fell && right->course == Course::rose && passes >= kind.limit) {
      add(kind, validated->since, false, str(fixed(passes, 1), " passes over the training problems"));
    }
    return true;
  }

  // The first saved step at which the cause stands.
  void add_tokens() {
    const std::vector<int64_t> steps = steps_with_signals(run_.path);
    int64_t read = -1;
    StepData data;
    for (Cause& cause : made_.found) {
      const auto after = std::ranges::lower_bound(steps, static_cast<int64_t>(cause.since));
      if (cause.kind->tokens == ShownIn::none || after == steps.end() || std::isfinite(cause.until)) continue;
      if (cause.at_once && cause.kind->rule == CauseRule::spike && *after != static_cast<int64_t>(cause.since))
        continue;
      if (*after != read)
        data = read_step_data(path_join(path_join(run_.path, "signals"), step_name(*after) + ".jsonl"));
      read = *after;
      cause.shown.tokens = tokens_of(cause.kind->tokens, data);
    }
  }

  const RunRecord& run_;
  const std::vector<StoredResponse>& stored_;
  StepTable table_;
  Causes made_;
};

}  // namespace

const Trend* Causes::fallen() const {
  const auto found = std::ranges::find(trends, Course::fell, &Trend::course);
  return found == trends.end() ? nullptr : &*found;
}

bool was_graded(const StepTable& table) {
  const auto some = [&](const char* key) {
    const KnownSteps s = series_of(table, key);
    return s.size() > 0 && s.after(0, kCauseWindow) > 0;
  };
  return some(metric::verifier_unequal_share.key) || some(metric::verifier_unparseable_share.key);
}

bool Causes::risen() const {
  return fallen() == nullptr && std::ranges::any_of(trends, [](const Trend& t) { return t.course == Course::rose; });
}

Causes find_causes(const RunRecord& run, const std::vector<StoredResponse>& stored) {
  return CauseFinder(run, stored).find();
}

}  // namespace ucas
