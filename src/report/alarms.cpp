#include "report/alarms.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "report/page/template.h"
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
    unequal_evaluation();
    std::ranges::stable_sort(report_.alarms, std::ranges::greater{}, &Alarm::serious);
    for (const std::string& check : checked_) {
      if (std::ranges::find(report_.alarms, check, &Alarm::title) == report_.alarms.end()) {
        report_.quiet.push_back(check);
      }
    }
    return std::move(report_);
  }

 private:
  void add(bool serious, std::string title, std::string what, std::string cause) {
    report_.alarms.push_back({serious, std::move(title), group_->title, run_->name, std::move(what), std::move(cause)});
  }
  void checked(const std::string& title) {
    if (std::ranges::find(checked_, title) == checked_.end()) checked_.push_back(title);
  }

  void trained() {
    const Signs signs = find_signs(run_->steps);
    for (const SignRow* row : signs.quiet) checked(row->title);
    for (const FoundSign& sign : signs.found) {
      checked(sign.row->title);
      add(!sign.note, sign.row->title, sign.what, sign.advice());
    }
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
        return alarm.title == row.title && alarm.group == group_->title && alarm.run == run_->name;
      });
      if (share <= rule.limit || said) continue;
      add(!run_->steps.step.empty(), row.title,
          str(percent(share), " of ", rule.words, " in the evaluation", summary.data.empty() ? "" : " on ",
              short_path(summary.data, 1), " (threshold ", percent(rule.limit, 0), ")"),
          row.meaning);
    }
  }

  // The same finding in several runs of a group is listed once, with the numbers of the first.
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

  // A comparison is only as good as what the evaluations share. Templates may differ on purpose, so this is a note.
  void unequal_evaluation() {
    for (const ResultTable& summary : summaries_) {
      const auto said = [](const EvalRecord* e) { return e->asked.has_value(); };
      if (std::ranges::none_of(evaluations_of(groups_, summary.data), said)) continue;
      checked("Evaluated differently");
      std::vector<std::string> differences = asked_differences(groups_, summary.data);
      if (differences.empty()) continue;
      if (differences.size() > 6) differences.resize(6);
      report_.alarms.push_back(
          {false, "Evaluated differently", "all runs", "", join(differences, "; "),
           "The evaluations differ in more than the model, and so may the figures for that reason. Evaluate all models "
           "alike, or say so next to the table."});
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
