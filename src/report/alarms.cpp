#include "report/alarms.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/str.h"
#include "core/metrics.h"
#include "report/benchmarks.h"
#include "report/causes/cause.h"
#include "report/causes/find.h"
#include "report/escape.h"

namespace ucas {

namespace {

constexpr size_t kFewestSteps = 3;  // a trend needs that many

double limit_of(const char* title) { return cause_kind(title).limit; }

// Mean of the last known values, and how many there were.
double recent(const StepTable& steps, const std::string& key, size_t& count) {
  std::vector<double> known;
  if (const auto* values = steps.find(key)) {
    for (auto it = values->rbegin(); it != values->rend() && known.size() < kCauseWindow; ++it) {
      if (!std::isnan(*it)) known.push_back(*it);
    }
  }
  count = known.size();
  return mean_of(known);
}

class Finder {
 public:
  Finder(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries)
      : groups_(groups), summaries_(summaries) {}

  AlarmReport run() {
    for (const RunGroup& group : groups_) {
      for (const RunRecord* run : group.runs) {
        group_ = &group;
        run_ = run;
        entropy();
        dead_groups();
        never_right();
        recent_share("Length clipping", "responses hit the length limit");
        recent_share("Unparseable answers", "responses hold no answer that could be read");
        mismatch();
        not_finite();
        skipped();
        for (const ResultTable& summary : summaries_) evaluated(summary);
      }
    }
    merge();
    comparability();
    std::stable_sort(report_.alarms.begin(), report_.alarms.end(),
                     [](const Alarm& a, const Alarm& b) { return a.serious > b.serious; });
    for (const std::string& check : checked_) {
      if (std::none_of(report_.alarms.begin(), report_.alarms.end(),
                       [&](const Alarm& a) { return a.title == check; })) {
        report_.quiet.push_back(check);
      }
    }
    return std::move(report_);
  }

 private:
  void add(bool serious, const char* title, std::string what, std::string cause) {
    report_.alarms.push_back({serious, title, group_->title, run_->name, std::move(what), std::move(cause)});
  }
  void checked(const char* title) {
    if (std::find(checked_.begin(), checked_.end(), title) == checked_.end()) checked_.push_back(title);
  }

  // Low entropy alone is what success looks like on an easy task; lost pass@k is what makes it a collapse, and where
  // that is not known, a reward that did not rise.
  void entropy() {
    const CauseKind& kind = cause_kind("Entropy collapse");
    const KnownSteps s = series_of(run_->steps, kind.key);
    if (s.size() < kFewestSteps) return;
    checked("Entropy collapse");
    const auto i = began(kind, s);
    if (!i)
      return over(kind, s, [](double least) {
        return str("entropy was below ", percent(limit_of("Entropy collapse"), 0), " of its start, down to ",
                   measure_text(least));
      });
    double change = kUnknown;
    std::string pass = pass_change(change);
    const bool kept = std::isnan(change) ? has_risen(run_->steps) : change >= -0.01;
    add(!kept, kept ? "Low entropy" : "Entropy collapse",
        str("entropy from ", measure_text(s.value[0]), " to ", measure_text(s.value.back()), ", below ",
            percent(kind.limit, 0), " of its start from step ", s.step[*i], " on", pass.empty() ? "" : "; ", pass),
        !kept ? kind.meaning
        : std::isnan(change)
            ? "The policy has become sure of itself while its reward rose and stays: not harmful so far."
            : "The policy has become sure of itself without losing problems it could solve: not "
              "harmful here.");
  }

  // What stood in the run and ended, in the words of who said it then.
  template <class Words>
  void over(const CauseKind& kind, const KnownSteps& s, Words words) {
    const std::optional<Passed> found = passed(kind, s);
    if (!found) return;
    add(false, kind.title, str("over: from step ", found->from, " to step ", found->to, " ", words(found->most)),
        "It ended in the run. It is listed because it was reported then.");
    report_.alarms.back().over = true;
  }

  // "pass@64 99.9 % -> 100.0 %" of this run against the untrained one of its seed (or the first).
  std::string pass_change(double& change) {
    for (const ResultTable& summary : summaries_) {
      const EvalRecord* after = final_evaluation(*run_, summary.data);
      const EvalRecord* before = nullptr;
      for (const RunGroup& group : groups_) {
        if (group.trained) continue;
        for (const RunRecord* base : group.runs) {
          if (!before || base->seed == run_->seed) before = final_evaluation(*base, summary.data);
        }
      }
      if (!after || !before || after->pass_at.empty() || before->pass_at.empty()) continue;
      const FigureAt &a = after->pass_at.back(), &b = before->pass_at.back();
      if (a.k != b.k) continue;
      change = a.share.value - b.share.value;
      return str("pass@", a.k, " from ", percent(b.share.value), " to ", percent(a.share.value));
    }
    return "";
  }

  void dead_groups() {
    const CauseKind& kind = cause_kind("Dead groups");
    const KnownSteps s = series_of(run_->steps, kind.key);
    if (s.size() == 0) return;
    checked("Dead groups");
    const auto words = [](double share) {
      return str("up to ", percent(share), " of groups had one verdict for all responses");
    };
    if (!began(kind, s)) return over(kind, s, words);
    const double share = s.trailing(s.size() - 1, kCauseWindow);
    size_t n = 0;
    double all = recent(run_->steps, metric::train_solve_all.key, n),
           none = recent(run_->steps, metric::train_solve_none.key, n);
    const std::string split = n == 0 ? "" : dead_groups_reading(all, none);
    add(true, "Dead groups",
        str(percent(share), " of groups had one verdict for all responses (mean of the last ",
            std::min(s.size(), kCauseWindow), " steps)"),
        str(kind.meaning, " ", split, split.empty() ? "" : " ", "Use other problems or more samples a prompt."));
  }

  void never_right() {
    const CauseKind& kind = cause_kind("No right answer");
    const KnownSteps s = series_of(run_->steps, kind.key);
    if (s.size() == 0) return;
    checked("No right answer");
    if (!was_graded(run_->steps)) return;
    size_t steps = 0;
    while (steps < s.size() && !(s.value[s.size() - 1 - steps] > 0)) ++steps;
    if (static_cast<double>(steps) < kind.limit) {
      return over(kind, s, [](double count) { return str(count, " steps in a row had no right response"); });
    }
    size_t n = 0;
    double unequal = recent(run_->steps, metric::verifier_unequal_share.key, n);
    add(true, "No right answer",
        str("no response of the last ", std::min(steps, kCauseWindow),
            " steps was right, though an answer was read in ", percent(unequal)),
        kind.meaning);
  }

  void recent_share(const char* title, const char* of_what) {
    const CauseKind& kind = cause_kind(title);
    const KnownSteps s = series_of(run_->steps, kind.key);
    if (s.size() == 0) return;
    checked(title);
    if (!began(kind, s))
      return over(kind, s, [&](double share) { return str("up to ", percent(share), " of ", of_what); });
    add(true, title,
        str(percent(s.trailing(s.size() - 1, kCauseWindow)), " of ", of_what, " (mean of the last ",
            std::min(s.size(), kCauseWindow), " steps; threshold ", percent(kind.limit, 0), ")"),
        kind.meaning);
  }

  void evaluated(const ResultTable& summary) {
    const EvalRecord* evaluation = final_evaluation(*run_, summary.data);
    if (!evaluation) return;
    auto check = [&](const char* title, double share, const char* of_what, const char* cause) {
      if (std::isnan(share)) return;
      const double most = limit_of(title);
      checked(title);
      if (share <= most) return;
      for (const Alarm& alarm : report_.alarms) {  // said for the training steps already
        if (alarm.title == title && !alarm.over && alarm.group == group_->title && alarm.run == run_->name) return;
      }
      add(run_->steps.step.size() > 0, title,
          str(percent(share), " of ", of_what, " in the evaluation", summary.data.empty() ? "" : " on ",
              short_path(summary.data, 1), " (threshold ", percent(most, 0), ")"),
          cause);
    };
    check("Length clipping", evaluation->truncated, "responses hit the length limit",
          "A cut answer cannot be right. Compare with a longer limit before trusting the accuracy.");
    check("Unparseable answers", evaluation->unparseable, "responses hold no answer that could be read",
          "Accuracy measures format as well as skill here. Check template and stop tokens.");
  }

  void mismatch() {
    const auto* values = run_->steps.find(metric::rollout_logprob_diff_max.key);
    if (!values) return;
    checked("Sampler/trainer mismatch");
    const CauseKind& kind = cause_kind("Sampler/trainer mismatch");
    size_t worst = values->size(), above = 0;
    for (size_t i = 0; i < values->size(); ++i) {
      if (std::isnan((*values)[i])) continue;
      above += (*values)[i] > kind.limit;
      if (worst == values->size() || (*values)[i] > (*values)[worst]) worst = i;
    }
    if (above == 0) return;
    add(true, "Sampler/trainer mismatch",
        str("log-probs of one token differ by up to ", measure_text((*values)[worst]), " (step ",
            run_->steps.step[worst], "); beyond ", measure_text(kind.limit), " in ", above, " of ", values->size(),
            " steps"),
        kind.meaning);
  }

  void not_finite() {
    if (run_->steps.empty()) return;
    checked("Numbers that are not finite");
    std::vector<std::string> keys;
    std::set<std::string> seen;
    for (const auto& [key, step] : run_->steps.not_finite) {
      if (seen.insert(key).second && keys.size() < 4) keys.push_back(str(printable(key), " at step ", step));
    }
    if (seen.size() > keys.size()) keys.push_back(str(seen.size() - keys.size(), " other numbers"));
    if (!keys.empty()) {
      add(true, "Numbers that are not finite", join(keys, ", "), cause_kind("Numbers that are not finite").meaning);
    }
  }

  void skipped() {
    const std::pair<const char*, const char*> kinds[] = {
        {"Skipped steps", "optimizer steps left out because loss or gradient were not finite"},
        {"Empty steps", "steps without a single group to train on"}};
    for (const auto& [title, words] : kinds) {
      const CauseKind& kind = cause_kind(title);
      const KnownSteps s = series_of(run_->steps, kind.key);
      if (s.size() == 0) continue;
      checked(title);
      const double most = *std::ranges::max_element(s.value);
      if (most > 0) add(true, title, str(most, " ", words), kind.meaning);
    }
  }

  // The same finding in several runs of a group is told once, with the numbers of the first.
  void merge() {
    std::vector<Alarm> merged;
    std::vector<std::vector<std::string>> names;
    for (const Alarm& alarm : report_.alarms) {
      size_t i = 0;
      while (i < merged.size() && !(merged[i].title == alarm.title && merged[i].group == alarm.group &&
                                    merged[i].serious == alarm.serious && merged[i].cause == alarm.cause)) {
        ++i;
      }
      if (i == merged.size()) {
        merged.push_back(alarm);
        names.emplace_back();
      }
      if (std::find(names[i].begin(), names[i].end(), alarm.run) == names[i].end()) names[i].push_back(alarm.run);
    }
    for (size_t i = 0; i < merged.size(); ++i) {
      if (names[i].size() > 1) merged[i].what = str(names[i][0], ": ", merged[i].what);
      merged[i].run = join(names[i], ", ");
    }
    report_.alarms = std::move(merged);
  }

  // Cards say how each model was asked and graded; templates may differ on purpose, so this is a note.
  void unequal_evaluation() {
    for (const ResultTable& summary : summaries_) {
      bool carded = std::ranges::any_of(groups_, [&](const RunGroup& group) {
        const EvalRecord* e = final_evaluation(*group.runs[0], summary.data);
        return e && e->card;
      });
      if (!carded) continue;
      checked("Evaluated differently");
      std::vector<std::string> differences = card_differences(groups_, summary.data);
      if (differences.empty()) continue;
      if (differences.size() > 6) differences.resize(6);
      report_.alarms.push_back({false, "Evaluated differently", "all runs", "", join(differences, "; "),
                                "The run cards differ in more than the model, and so may the figures for that reason. "
                                "Evaluate all models alike, or say so beside the table."});
    }
  }

  // A comparison is only as good as what the runs share.
  void comparability() {
    unequal_evaluation();
    std::vector<const RunGroup*> trained;
    for (const RunGroup& group : groups_) {
      if (group.trained) trained.push_back(&group);
    }
    if (trained.size() < 2) return;
    checked("Unequal seeds");
    std::set<std::multiset<int64_t>> seeds;
    std::vector<std::string> texts;
    for (const RunGroup* group : trained) {
      std::multiset<int64_t> own;
      for (const RunRecord* run : group->runs) own.insert(run->seed);
      seeds.insert(own);
      texts.push_back(str(group->title, ": ", group->seeds()));
    }
    if (seeds.size() > 1) {
      report_.alarms.push_back({false, "Unequal seeds", "all runs", "", join(texts, "; "),
                                "The methods were not run with the same seeds; part of a difference may be luck."});
    }
    checked("Unequal number of steps");
    std::set<double> lengths;
    texts.clear();
    for (const RunGroup* group : trained) {
      for (const RunRecord* run : group->runs) {
        if (run->steps.empty()) continue;
        lengths.insert(run->steps.step.back());
        texts.push_back(str(run->name, ": ", run->steps.step.back()));
      }
    }
    if (lengths.size() > 1) {
      report_.alarms.push_back({false, "Unequal number of steps", "all runs", "", join(texts, ", "),
                                "The runs did not train equally long (or one is still running)."});
    }
  }

  const std::vector<RunGroup>& groups_;
  const std::vector<ResultTable>& summaries_;
  const RunGroup* group_ = nullptr;
  const RunRecord* run_ = nullptr;
  std::vector<std::string> checked_;
  AlarmReport report_;
};

}  // namespace

AlarmReport find_alarms(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries) {
  return Finder(groups, summaries).run();
}

}  // namespace ucas
