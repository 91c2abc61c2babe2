#include "report/alarms.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/str.h"
#include "report/benchmarks.h"
#include "report/signs.h"

namespace ucas {

namespace {

class AlarmFinder {
 public:
  AlarmFinder(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries)
      : groups_(groups), summaries_(summaries) {}

  AlarmReport find() {
    for (const RunGroup& group : groups_) {
      for (const RunRecord* run : group.runs) {
        group_ = &group;
        run_ = run;
        trained();
        for (const ResultTable& summary : summaries_) evaluated(summary);
      }
    }
    merge();
    comparability();
    std::ranges::stable_sort(report_.alarms, std::ranges::greater{}, &Alarm::serious);
    for (const std::string& check : checked_) {
      if (std::ranges::find(report_.alarms, check, &Alarm::title) == report_.alarms.end()) {
        report_.quiet.push_back(check);
      }
    }
    return std::move(report_);
  }

 private:
  void add(bool serious, std::string title, std::string what, std::string cause, bool over = false) {
    report_.alarms.push_back(
        {serious, std::move(title), group_->title, run_->name, std::move(what), std::move(cause), over});
  }
  void remark(const char* title, std::string what, const char* cause) {
    report_.alarms.push_back({false, title, "all runs", "", std::move(what), cause});
  }
  void checked(const std::string& title) {
    if (std::ranges::find(checked_, title) == checked_.end()) checked_.push_back(title);
  }

  void trained() {
    const Signs signs = find_signs(run_->steps);
    for (const SignRow* row : signs.quiet) checked(row->title);
    for (FoundSign sign : signs.found) {
      checked(sign.row->title);
      if (sign.row->sign == Sign::entropy_collapse && !sign.over()) {
        entropy(std::move(sign));
      } else {
        add(!sign.note, sign.row->title, sign.what, sign.advice(), sign.over());
      }
    }
  }

  // Low entropy alone is what success looks like on an easy task; lost pass@k is what makes it a collapse, and where
  // that is not known, a reward that did not rise.
  void entropy(FoundSign sign) {
    double change = kUnknown;
    const std::string pass = pass_change(change);
    if (!std::isnan(change)) sign.note = change >= -0.01;
    if (!pass.empty()) sign.what += "; " + pass;
    const bool known_note = sign.note && !std::isnan(change);
    add(!sign.note, sign.note ? "Low entropy" : sign.row->title, sign.what,
        known_note ? "The policy has become sure of itself without losing problems it could solve: not harmful here."
                   : sign.advice());
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

  // What only training was asked of, an evaluation says of its own responses.
  void evaluated(const ResultTable& summary) {
    const EvalRecord* evaluation = final_evaluation(*run_, summary.data);
    if (!evaluation) return;
    for (const auto& [sign, share] : {std::pair(Sign::length_clipping, evaluation->truncated),
                                      std::pair(Sign::unparseable, evaluation->unparseable)}) {
      if (std::isnan(share)) continue;
      const SignRow& row = row_of(sign);
      const SignRule& rule = row.rules[0];
      checked(row.title);
      const bool said = std::ranges::any_of(report_.alarms, [&](const Alarm& alarm) {
        return alarm.title == row.title && !alarm.over && alarm.group == group_->title && alarm.run == run_->name;
      });
      if (share <= rule.limit || said) continue;
      add(!run_->steps.step.empty(), row.title,
          str(percent(share), " of ", rule.words, " in the evaluation", summary.data.empty() ? "" : " on ",
              short_path(summary.data, 1), " (threshold ", percent(rule.limit, 0), ")"),
          row.meaning);
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

  // Templates may differ on purpose, so this is a note.
  void unequal_evaluation() {
    for (const ResultTable& summary : summaries_) {
      const bool said = std::ranges::any_of(groups_, [&](const RunGroup& group) {
        const EvalRecord* e = final_evaluation(*group.runs[0], summary.data);
        return e && e->asked;
      });
      if (!said) continue;
      checked("Evaluated differently");
      std::vector<std::string> differences = asked_differences(groups_, summary.data);
      if (differences.empty()) continue;
      if (differences.size() > 6) differences.resize(6);
      remark("Evaluated differently", join(differences, "; "),
             "The evaluations differ in more than the model, and so may the figures for that reason. Evaluate all "
             "models alike, or say so beside the table.");
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
      remark("Unequal seeds", join(texts, "; "),
             "The methods were not run with the same seeds; part of a difference may be luck.");
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
      remark("Unequal number of steps", join(texts, ", "),
             "The runs did not train equally long (or one is still running).");
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
  return AlarmFinder(groups, summaries).find();
}

}  // namespace ucas
