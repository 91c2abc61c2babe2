#include "report/causes/diagnose_causes.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "base/text/json.h"
#include "results/table.h"
#include "stats/spread.h"

namespace ucas {

namespace {

constexpr size_t kCausesWidth = 110;

// Of a few validations: "rose from 25.0 % at step 0 to 95.3 % at step 20 (+70.3 points, 95 % interval +56.5 to +79.8)".
std::string validations_line(const Trend& t) {
  const char* words = t.course == Course::rose ? "rose" : t.course == Course::fell ? "fell" : "went";
  std::string text = str(t.key, " ", words, " from ", percent(t.first), " at step ", t.first_step, " to ",
                         percent(t.last), " at step ", t.last_step);
  text += str(" (", change_text(t.last - t.first, true), " points");
  if (std::isfinite(t.low)) text += ", 95 % interval " + interval_text({t.last - t.first, t.low, t.high}, true);
  return text + ")";
}

std::string trend_line(const Trend& t) {
  if (std::isfinite(t.first_step)) return validations_line(t);
  switch (t.course) {
    case Course::unknown:
      return str(t.key, ": too few values to say");
    case Course::rose:
      return str(t.key, " rose from ", measure_text(t.first), " to ", measure_text(t.last));
    case Course::flat:
      return str(t.key, " stayed flat: ", measure_text(t.first), " at first, ", measure_text(t.last), " at last");
    case Course::fell:
      return str(t.key, " fell from ", measure_text(t.best), " (best, at step ", t.best_step, ") to ",
                 measure_text(t.last), ", since step ", t.since);
  }
  return "";
}

// Before or after what it may explain.
std::string order_words(const Cause& cause, const Trend* fallen) {
  if (cause.always) return ", the first";
  if (fallen == nullptr || cause.note) return "";
  const double apart = cause.since - fallen->since;
  if (apart == 0) return ", as the fall began";
  return str(", ", std::fabs(apart), std::fabs(apart) == 1 ? " step" : " steps",
             apart < 0 ? " before the fall began" : " after the fall began: perhaps a consequence");
}

std::string indented(const std::string& text) { return "     " + wrap_text(text, kCausesWidth, 5, 5) + "\n"; }

std::string evidence_text(const Cause& cause) {
  Table table{{"", "before", cause.at_once ? "at that step" : "since"}, {}, "lr"};
  for (const Evidence& e : cause.evidence) {
    table.rows.push_back({e.key, measure_text(e.before), measure_text(e.after)});
  }
  return table.rows.empty() ? "" : table.text("     ", kCausesWidth);
}

std::string shown_text(const Shown& shown) {
  std::string text;
  std::vector<std::string> problems;
  for (const ProblemCount& p : shown.problems) {
    problems.push_back(str(printable(p.problem, 60), " (", p.shown, " of ", p.stored, " stored responses)"));
  }
  if (!problems.empty()) text += indented(str("problems: ", join(problems, ", ")));
  for (const Witness& w : shown.responses) {
    text += indented(str("step ", w.step, ", ", printable(w.problem, 60), ", sample ", w.sample, ": ", w.what));
    if (!w.text.empty()) text += str("       | ", w.text, "\n");
  }
  for (const WitnessedToken& t : shown.tokens) {
    text += str("     token \"", t.piece, "\" at ", t.position, " of step ", t.step, ", ", printable(t.problem, 60),
                ", sample ", t.sample, ": ", t.what, "\n");
  }
  return text;
}

std::string tries_text(const CausesReport& report, const Cause& cause) {
  std::vector<std::string> tries;
  for (const CauseRemedy& r : cause.kind->remedies) {
    const std::string now = report.run.setting(r.option);
    tries.push_back(str("--", r.option, now.empty() ? "" : str(" (now ", printable(now, 60), ")"), ": ", r.how));
  }
  return indented(str("try ", join(tries, "; ")));
}

std::string cause_text(const CausesReport& report, const Cause& cause, const std::string& number) {
  if (std::isfinite(cause.until)) {
    return str("\n", number, cause.kind->title, ", from step ", cause.since, " to step ", cause.until, ": over\n");
  }
  return str("\n", number, cause.kind->title, cause.at_once ? ", at step " : ", since step ", cause.since,
             order_words(cause, report.causes.fallen()), "\n", evidence_text(cause),
             cause.what.empty() ? "" : indented(cause.what),
             cause.note ? indented("Not harmful so far: the reward rose and stays.") : indented(cause.kind->meaning),
             shown_text(cause.shown), cause.note ? "" : tries_text(report, cause));
}

int64_t steps_done(const RunRecord& run) { return run.steps.empty() ? 0 : static_cast<int64_t>(run.steps.step.back()); }

// What to look at next of what was found.
std::string next_text(const CausesReport& report) {
  for (const Cause& cause : report.causes.found) {
    if (cause.note || cause.shown.tokens.empty()) continue;
    const WitnessedToken& t = cause.shown.tokens[0];
    return str("\nnext: ucas replay ", printable(report.run.path, 400), " --step ", t.step, " --problem ",
               printable(t.problem, 60), " --sample ", t.sample, " --show\n");
  }
  return "";
}

std::string verdict_text(const CausesReport& report, int64_t count) {
  if (count > 0) return "";
  const Causes& causes = report.causes;
  const std::string looked = str(causes.quiet.size(), " causes were checked, none detected");
  if (const Trend* fallen = causes.fallen()) {
    return indented(str("No cause named: ", fallen->key, " fell, and ", looked,
                        ". Compare the responses of rollouts/ before and after step ", fallen->since, "."));
  }
  return indented(str("No cause named: ", looked, "."));
}

}  // namespace

std::string causes_text(const CausesReport& report) {
  const RunRecord& run = report.run;
  const std::string wanted = run.setting("train.steps");
  std::string text =
      str(printable(run.path, 400), ": ", run.method.empty() ? "a training" : run.method, ", ",
          grouped(steps_done(run)), " steps", wanted.empty() || wanted == "0" ? "" : str(" of ", wanted), "\n");
  for (const std::string& remark : report.causes.remarks) text += str("  note: ", remark, "\n");
  for (const Trend& trend : report.causes.trends) text += str("  ", trend_line(trend), "\n");
  int64_t count = 0;
  for (const Cause& cause : report.causes.found) {
    text += cause_text(report, cause, cause.note ? "note " : str(++count, ". "));
  }
  if (count == 0) text += "\n" + verdict_text(report, count);
  if (!report.causes.quiet.empty()) {
    text += "\n" + wrap_text("looked for and not found: " + join(report.causes.quiet, ", "), kCausesWidth, 2, 0) + "\n";
  }
  if (!report.causes.unlooked.empty()) {
    text += wrap_text("no numbers for: " + join(report.causes.unlooked, ", "), kCausesWidth, 2, 0) + "\n";
  }
  return text + next_text(report);
}

namespace {

OrderedJson step_json(double step) {
  return std::isfinite(step) ? OrderedJson(static_cast<int64_t>(step)) : OrderedJson(nullptr);
}

}  // namespace

std::string causes_json(const CausesReport& report) {
  const Causes& causes = report.causes;
  OrderedJson json = {{"format", "ucas-causes-1"},       {"run", report.run.path},    {"method", report.run.method},
                      {"steps", steps_done(report.run)}, {"remarks", causes.remarks}, {"trends", OrderedJson::array()},
                      {"causes", OrderedJson::array()},  {"quiet", causes.quiet},     {"unlooked", causes.unlooked}};
  for (const Trend& t : causes.trends) {
    json["trends"].push_back({{"metric", t.key},
                              {"course", names(Course{})[static_cast<size_t>(t.course)]},
                              {"first", t.first},
                              {"best", t.best},
                              {"best_step", step_json(t.best_step)},
                              {"last", t.last},
                              {"since", step_json(t.since)}});
  }
  for (const Cause& cause : causes.found) {
    OrderedJson row = {{"cause", cause.kind->title},
                       {"note", cause.note},
                       {"since", static_cast<int64_t>(cause.since)},
                       {"until", step_json(cause.until)},
                       {"at_once", cause.at_once},
                       {"from_the_start", cause.always},
                       {"what", cause.what},
                       {"meaning", cause.kind->meaning},
                       {"evidence", OrderedJson::array()},
                       {"problems", OrderedJson::array()},
                       {"responses", OrderedJson::array()},
                       {"tokens", OrderedJson::array()},
                       {"try", OrderedJson::array()}};
    for (const Evidence& e : cause.evidence) {
      row["evidence"].push_back({{"metric", e.key}, {"before", e.before}, {"after", e.after}});
    }
    for (const ProblemCount& p : cause.shown.problems) {
      row["problems"].push_back({{"problem", p.problem}, {"shown", p.shown}, {"stored", p.stored}});
    }
    for (const Witness& w : cause.shown.responses) {
      row["responses"].push_back({{"step", w.step},
                                  {"problem", w.problem},
                                  {"sample", w.sample},
                                  {"tokens", w.tokens},
                                  {"what", w.what},
                                  {"text", w.text}});
    }
    for (const WitnessedToken& t : cause.shown.tokens) {
      row["tokens"].push_back({{"step", t.step},
                               {"problem", t.problem},
                               {"sample", t.sample},
                               {"position", t.position},
                               {"piece", t.piece},
                               {"what", t.what}});
    }
    for (const CauseRemedy& r : cause.kind->remedies) {
      row["try"].push_back({{"option", r.option}, {"now", report.run.setting(r.option)}, {"how", r.how}});
    }
    json["causes"].push_back(std::move(row));
  }
  return json_text(json) + "\n";
}

}  // namespace ucas
