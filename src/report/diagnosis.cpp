#include "report/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/files/file.h"
#include "base/str.h"
#include "records/run/run_directory.h"
#include "results/table.h"

namespace ucas {

namespace {

constexpr size_t kShownText = 160, kMostWitnesses = 3;
constexpr size_t kMostStoredSteps = 100, kLastSteps = 10, kWidth = 110;

// ------------------------------------------------------------------------------------------ responses that show it

std::string ending_of(const std::string& text) {
  if (text.size() <= kShownText) return printable(text, kShownText);
  size_t from = text.size() - kShownText;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;  // inside a character
  return "..." + printable(text.substr(from), kShownText);
}

bool shows(ShownBy sign, const StoredResponse& r) {
  switch (sign) {
    case ShownBy::cut:
      return !r.finished;
    case ShownBy::unreadable:
      return r.verdict == VerdictKind::unparseable;
    case ShownBy::wrong:
      return r.verdict && r.verdict != VerdictKind::equal;
    case ShownBy::paid_wrong:
      return r.verdict && r.verdict != VerdictKind::equal && r.score > 0;
    case ShownBy::none:
      break;
  }
  return false;
}

std::string words_of(const StoredResponse& r) {
  std::string text = r.tokens >= 0 ? str(r.tokens, " tokens") : "";
  if (!r.finished) text += text.empty() ? "no end" : ", no end";
  if (r.verdict) text += str(text.empty() ? "" : ", ", name_of(*r.verdict));
  if (!r.answer.empty()) text += str(", read as ", printable(r.answer, 40));
  if (!r.gold.empty()) text += str(", right is ", printable(r.gold[0], 40));
  if (!std::isnan(r.reward)) text += str(", reward ", fixed(r.reward, 2));
  if (!r.reason.empty() && r.verdict != VerdictKind::equal) text += str(", ", printable(r.reason, 60));
  return text;
}

// Of the steps from `since` on: the latest, one of each problem first.
std::vector<Witness> shown_by(ShownBy sign, const std::vector<StoredResponse>& stored, double since) {
  std::vector<Witness> shown;
  for (const StoredResponse& r : stored) {
    if (static_cast<double>(r.step) < since || !shows(sign, r)) continue;
    shown.push_back({r.step, r.sample, r.problem, words_of(r), ending_of(r.response)});
  }
  std::ranges::reverse(shown);
  std::set<std::string> seen;
  std::ranges::stable_partition(shown, [&](const Witness& w) { return seen.insert(w.problem).second; });
  if (shown.size() > kMostWitnesses) shown.resize(kMostWitnesses);
  return shown;
}

// ----------------------------------------------------------------------------------------------------------- its signs

class Diagnosing {
 public:
  Diagnosing(const RunRecord& run, const std::vector<StoredResponse>& stored) : run_(run), stored_(stored) {}

  RunDiagnosis make() {
    for (const char* key : kJudged) {
      if (!run_.steps.fitting(key).empty()) made_.trends.push_back(trend_of(run_.steps, key));
    }
    Signs signs = find_signs(run_.steps);
    made_.quiet = std::move(signs.quiet);
    made_.blind = std::move(signs.blind);
    for (FoundSign& sign : signs.found) add(std::move(sign));
    const Trend* fallen = made_.fallen();
    const auto rank = [&](const Cause& c) {
      if (c.sign.note) return 3;
      if (c.always) return 1;
      return fallen != nullptr && c.sign.since > fallen->since ? 2 : 0;
    };
    std::ranges::stable_sort(made_.found, [&](const Cause& a, const Cause& b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : a.sign.since < b.sign.since;
    });
    return std::move(made_);
  }

 private:
  void add(FoundSign sign) {
    Cause& cause = made_.found.emplace_back();
    cause.sign = std::move(sign);
    const std::vector<double>& steps = run_.steps.step;
    cause.always = !cause.sign.at_once && steps.size() > 1 && cause.sign.since <= std::max(1.0, steps[0]);
    for (const SignRule& rule : cause.sign.row->rules) {
      if (!rule.key.empty()) add_evidence(cause, rule.key);
    }
    for (const std::string& key : cause.sign.row->also) add_evidence(cause, key);
    cause.shown = shown_by(cause.sign.row->responses, stored_, cause.sign.since);
  }

  void add_evidence(Cause& cause, const std::string& key) const {
    const KnownSteps s = series_of(run_.steps, key);
    const auto at = static_cast<size_t>(std::ranges::lower_bound(s.step, cause.sign.since) - s.step.begin());
    if (at == s.size()) return;
    cause.evidence.push_back(
        {key, s.before(at, kSignWindow), cause.sign.at_once ? s.value[at] : s.after(at, kSignWindow)});
  }

  const RunRecord& run_;
  const std::vector<StoredResponse>& stored_;
  RunDiagnosis made_;
};

// ----------------------------------------------------------------------------------------------------------- for
// people

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
  if (fallen == nullptr || cause.sign.note) return "";
  const double apart = cause.sign.since - fallen->since;
  if (apart == 0) return ", as the fall began";
  return str(", ", std::fabs(apart), std::fabs(apart) == 1 ? " step" : " steps",
             apart < 0 ? " before the fall began" : " after the fall began: perhaps a consequence");
}

std::string indented(const std::string& text) { return "     " + wrap_text(text, kWidth, 5, 5) + "\n"; }

std::string evidence_text(const Cause& cause) {
  Table table{{"", "before", cause.sign.at_once ? "at that step" : "since"}, {}, "lr"};
  for (const Evidence& e : cause.evidence) {
    table.rows.push_back({e.key, measure_text(e.before), measure_text(e.after)});
  }
  return table.rows.empty() ? "" : table.text("     ", kWidth);
}

std::string shown_text(const std::vector<Witness>& shown) {
  std::string text;
  for (const Witness& w : shown) {
    text += indented(str("step ", w.step, ", ", printable(w.problem, 60), ", sample ", w.sample, ": ", w.what));
    if (!w.text.empty()) text += str("       | ", w.text, "\n");
  }
  return text;
}

struct Remedy {
  std::string option, how;
};
Remedy remedy_of(const std::string& text) {
  const size_t colon = text.find(": ");
  return {text.substr(0, colon), text.substr(colon + 2)};
}

std::string tries_text(const RunRecord& run, const SignRow& row) {
  std::vector<std::string> tries;
  for (const std::string& text : row.tries) {
    const Remedy r = remedy_of(text);
    const std::string now = run.setting(r.option);
    tries.push_back(str("--", r.option, now.empty() ? "" : str(" (now ", printable(now, 60), ")"), ": ", r.how));
  }
  return indented(str("try ", join(tries, "; ")));
}

std::string cause_text(const RunRecord& run, const Cause& cause, const Trend* fallen, const std::string& number) {
  const FoundSign& sign = cause.sign;
  return str("\n", number, sign.row->title, sign.at_once ? ", at step " : ", since step ", sign.since,
             order_words(cause, fallen), "\n", indented(sign.what), evidence_text(cause),
             indented(sign.note ? sign.row->easy : sign.row->meaning), shown_text(cause.shown),
             sign.note ? "" : tries_text(run, *sign.row));
}

int64_t steps_done(const RunRecord& run) { return run.steps.empty() ? 0 : static_cast<int64_t>(run.steps.step.back()); }

// What to look at next of what was found.
std::string next_text(const RunRecord& run, const RunDiagnosis& diagnosis) {
  for (const Cause& cause : diagnosis.found) {
    if (cause.sign.note || cause.shown.empty()) continue;
    const Witness& w = cause.shown[0];
    return str("\nnext: ucas replay ", printable(run.path, 400), " --step ", w.step, " --problem ",
               printable(w.problem, 60), " --sample ", w.sample, " --show\n");
  }
  return "";
}

std::string verdict_text(const RunDiagnosis& diagnosis) {
  const std::string looked = str(diagnosis.quiet.size(), " signs were checked, none detected");
  if (const Trend* fallen = diagnosis.fallen()) {
    return indented(str("No cause named: ", fallen->key, " fell, and ", looked,
                        ". Compare the responses of rollouts/ before and after step ", fallen->since, "."));
  }
  return indented(str("No cause named: ", looked, "."));
}

std::vector<std::string> titles_of(const std::vector<const SignRow*>& rows) {
  std::vector<std::string> titles;
  for (const SignRow* row : rows) titles.push_back(row->title);
  return titles;
}

}  // namespace

std::vector<StoredResponse> read_stored(const std::string& run, std::vector<std::string>& remarks) {
  const std::string folder = path_join(run, "rollouts");
  std::vector<int64_t> steps;
  if (is_directory(folder)) {
    for (const std::string& name : list_directory(folder)) {
      if (const int64_t step = parse_step_name(name); step >= 0 && name.ends_with(".jsonl")) steps.push_back(step);
    }
  }
  std::ranges::sort(steps);
  std::vector<StoredResponse> all;
  const size_t spread = steps.size() > kMostStoredSteps ? kMostStoredSteps - kLastSteps : steps.size();
  std::set<size_t> chosen;
  for (size_t i = 0; i < spread; ++i) chosen.insert(i * steps.size() / spread);
  for (size_t i = steps.size() - std::min(steps.size(), kLastSteps); i < steps.size(); ++i) chosen.insert(i);
  for (size_t i : chosen) {
    const std::string file = path_join(folder, step_name(steps[i]) + ".jsonl");
    for (StoredResponse& r : read_rollouts(file, remarks)) {
      r.step = steps[i];
      all.push_back(std::move(r));
    }
  }
  return all;
}

const Trend* RunDiagnosis::fallen() const {
  const Trend* first = nullptr;
  for (const Trend& trend : trends) {
    if (trend.course == Course::fell && (first == nullptr || trend.since < first->since)) first = &trend;
  }
  return first;
}

RunDiagnosis diagnose_run(const RunRecord& run, const std::vector<StoredResponse>& stored) {
  return Diagnosing(run, stored).make();
}

std::string diagnosis_text(const RunRecord& run, const RunDiagnosis& diagnosis) {
  const std::string wanted = run.setting("train.steps");
  std::string text =
      str(printable(run.path, 400), ": ", run.method.empty() ? "a training" : run.method, ", ",
          grouped(steps_done(run)), " steps", wanted.empty() || wanted == "0" ? "" : str(" of ", wanted), "\n");
  for (const std::string& remark : diagnosis.remarks) text += str("  note: ", remark, "\n");
  for (const Trend& trend : diagnosis.trends) text += str("  ", trend_line(trend), "\n");
  int64_t count = 0;
  for (const Cause& cause : diagnosis.found) {
    text += cause_text(run, cause, diagnosis.fallen(), cause.sign.note ? "note " : str(++count, ". "));
  }
  if (count == 0) text += "\n" + verdict_text(diagnosis);
  for (const auto& [words, rows] :
       {std::pair("looked for and not found: ", &diagnosis.quiet), std::pair("no numbers for: ", &diagnosis.blind)}) {
    if (!rows->empty()) text += "\n" + wrap_text(words + join(titles_of(*rows), ", "), kWidth, 2, 0) + "\n";
  }
  return text + next_text(run, diagnosis);
}

}  // namespace ucas
