#include "study/table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "compare/pairing.h"
#include "compare/run_answers.h"
#include "core/metrics.h"
#include "stats/intervals.h"

namespace ucas {

namespace {

// A few columns that say enough, of what the first evaluation has.
std::vector<std::string> default_columns(const RunAnswers& run, const std::vector<std::string>& quoted) {
  std::vector<std::string> columns = quoted;
  int64_t most = 0;
  for (const ProblemAnswers& p : run.problems) most = std::max(most, p.samples);
  const auto add = [&](const std::string& column) {
    const bool there = std::ranges::find(columns, column) != columns.end();
    if (!there && !std::isnan(value_of(run, parse_quantity(column)))) columns.push_back(column);
  };
  for (const char* column : {"pass@4", "pass@16", "pass@64"}) add(column);
  if (most > 1) add(str("pass@", most));
  for (const char* name : {"entropy", "length", "truncated"}) add(name);
  return columns;
}

std::vector<std::string> expand_all(const std::vector<std::string>& columns, const std::vector<std::string>& sources) {
  std::vector<std::string> out;
  for (const std::string& column : columns) {
    for (std::string& one : expand_column(column, sources)) out.push_back(std::move(one));
  }
  return out;
}

const EvalRecord* evaluation_called(const RunRecord& run, const std::string& name) {
  const auto found = std::ranges::find(run.evaluations, name, &EvalRecord::name);
  return found == run.evaluations.end() ? nullptr : &*found;
}

// Of the trained rows where there are any: the base may have been asked more often.
std::vector<std::string> quoted_columns(const std::vector<AnswerGroup>& rows) {
  const bool trained = std::ranges::any_of(rows, &AnswerGroup::trained);
  std::vector<const RunAnswers*> runs;
  for (const AnswerGroup& row : rows) {
    for (const RunAnswers& run : row.runs) {
      if (row.trained || !trained) runs.push_back(&run);
    }
  }
  std::vector<std::string> columns;
  for (const Quantity& quantity : quoted_quantities(runs)) columns.push_back(quantity.text());
  return columns;
}

StudyRow study_row(const AnswerGroup& group, const std::vector<std::string>& columns) {
  StudyRow row{group.title, group.trained, {}, {}, {}};
  for (const RunAnswers& run : group.runs) row.runs.push_back(run.label);
  for (const std::string& column : columns) {
    StudyCell cell;
    std::vector<double> known;
    for (const RunAnswers& run : group.runs) {
      cell.values.push_back(value_of(run, parse_quantity(column)));
      cell.censored.push_back(run.censored.contains(column));
      if (!std::isnan(cell.values.back())) known.push_back(cell.values.back());
    }
    cell.mean = mean_of(known);
    cell.deviation = deviation_of(known);
    row.cells.push_back(std::move(cell));
  }
  return row;
}

// The same quantity at an accuracy that every training with such figures reaches.
Quantity least_of(Quantity quantity) {
  quantity.at = "0";
  return quantity;
}

// The step after the last one that a run was to take, whatever ended it before.
double after_all_steps(const RunRecord& run) {
  const double last = run.steps.step.empty() ? 0 : run.steps.step.back();
  return std::max(last, std::strtod(run.setting("train.steps").c_str(), nullptr)) + 1;
}

// What the columns ask of the trainings themselves. A run that never reached an accuracy counts with the first step at
// which it still might have.
void add_training_figures(const std::vector<RunGroup>& groups, const StudyTable& table,
                          std::vector<AnswerGroup>& answers) {
  std::vector<std::string> columns = table.columns;
  columns.insert(columns.end(), table.compare.begin(), table.compare.end());
  for (const std::string& column : columns) {
    const Quantity quantity = parse_quantity(column);
    if (!quantity.of_training()) continue;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (RunAnswers& run : answers[g].runs) {
        const auto record = std::ranges::find(groups[g].runs, run.name, [](const RunRecord* r) { return r->path; });
        const double value = training_value((*record)->steps, quantity);
        if (!std::isnan(value)) {
          run.figures[column] = value;
        } else if (quantity.name != "val_at" && !std::isnan(training_value((*record)->steps, least_of(quantity)))) {
          run.figures[column] = after_all_steps(**record);
          run.censored.insert(column);
        }
      }
    }
  }
}

// pass@K at matched accuracy, of the evaluation that the study calls "matched".
void add_matched_figures(const std::vector<RunGroup>& groups, const StudyTable& table,
                         std::vector<AnswerGroup>& answers) {
  std::vector<std::string> columns = table.columns;
  columns.insert(columns.end(), table.compare.begin(), table.compare.end());
  for (const std::string& column : columns) {
    const Quantity quantity = parse_quantity(column);
    if (quantity.name != "matched_pass") continue;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (RunAnswers& run : answers[g].runs) {
        const auto record = std::ranges::find(groups[g].runs, run.name, [](const RunRecord* r) { return r->path; });
        const EvalRecord* matched = evaluation_called(**record, "matched");
        if (!matched) continue;
        run.figures[column] =
            value_of(answers_of(**record, *matched), parse_quantity(str("pass@", quantity.at, ":macro")));
      }
    }
  }
}

std::string title_of(const TableOptions& options, const std::string& row) {
  const auto found = options.titles.find(row);
  return found == options.titles.end() ? row : found->second;
}

void add_gates(StudyTable& table) {
  std::vector<StudyGate> gates;
  for (const std::string& text : table.options.gates) gates.push_back(parse_gate(text));
  table.gates = check_gates(gates, [&](const std::string& row, const std::string& quantity) {
    const auto found = std::ranges::find(table.rows, title_of(table.options, row), &StudyRow::title);
    const auto column = std::ranges::find(table.columns, quantity);
    if (found == table.rows.end() || column == table.columns.end()) return kUnknown;
    return found->cells[static_cast<size_t>(column - table.columns.begin())].mean;
  });
}

// How the runs were evaluated; the base may have been asked more often.
void describe_evaluation(const std::vector<RunGroup>& groups, StudyTable& table) {
  for (const RunGroup& group : groups) {
    const EvalRecord* found = nullptr;
    for (const RunRecord* run : group.runs) {
      if (!found) found = evaluation_called(*run, table.options.eval);
    }
    if (!found) continue;
    (group.trained ? table.samples : table.base_samples) = found->config.samples;
    table.problems = found->problems;
    table.temperature = found->config.temperature;
    if (group.trained) return;
  }
  table.samples = table.base_samples;
}

bool asks_for_frontier(const StudyTable& table) {
  const auto is = [](const std::string& column) { return parse_quantity(column).name == "frontier"; };
  return std::ranges::any_of(table.columns, is) || std::ranges::any_of(table.compare, is);
}

// What the base of each run solved how often, for `frontier`.
void add_base_counts(std::vector<AnswerGroup>& answers) {
  std::map<std::string, std::map<ProblemKey, const ProblemAnswers*>> bases;
  for (const AnswerGroup& group : answers) {
    if (group.trained) continue;
    // The first: the same base may stand below with another prompt.
    for (const RunAnswers& run : group.runs) bases.try_emplace(run.label.base, by_key(run));
  }
  for (AnswerGroup& group : answers) {
    for (RunAnswers& run : group.runs) {
      const auto base = bases.find(run.label.base);
      if (base == bases.end()) continue;
      for (const auto& [key, problem] : by_key(run)) {
        const auto found = base->second.find(key);
        if (found == base->second.end() || found->second->samples == 0) continue;
        ProblemAnswers& own = run.problems[problem - run.problems.data()];
        own.base_samples = found->second->samples;
        own.base_correct = found->second->correct;
        own.is_base = found->second == problem;
      }
    }
  }
}

bool is_placebo(const TableOptions& options, const std::string& title) {
  return std::ranges::any_of(options.decide.placebos,
                             [&](const std::string& row) { return title_of(options, row) == title; });
}

// The row of the decision against each placebo.
void compare_placebos(StudyTable& table, const std::vector<AnswerGroup>& answers) {
  const std::string decided = title_of(table.options, table.options.decide.row);
  const auto row = std::ranges::find(answers, decided, &AnswerGroup::title);
  if (row == answers.end()) return;
  for (const AnswerGroup& group : answers) {
    if (!is_placebo(table.options, group.title)) continue;
    PlaceboContrasts& placebo = table.placebos.emplace_back(PlaceboContrasts{group.title, {}});
    for (const std::string& column : table.compare) {
      placebo.below.push_back(contrast(group, *row, parse_quantity(column), table.options.statistics));
    }
  }
  std::vector<Contrast*> family;
  for (PlaceboContrasts& placebo : table.placebos) {
    for (Contrast& c : placebo.below) family.push_back(&c);
  }
  correct(family, table.options.statistics.level);
}

// Every row against the reference, but for placebos; all p corrected together.
void compare_rows(StudyTable& table, const std::vector<AnswerGroup>& answers, size_t reference) {
  std::vector<Contrast*> family;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (i == reference || is_placebo(table.options, table.rows[i].title)) continue;
    for (const std::string& column : table.compare) {
      table.rows[i].against.push_back(
          contrast(answers[reference], answers[i], parse_quantity(column), table.options.statistics));
    }
  }
  for (StudyRow& row : table.rows) {
    for (Contrast& c : row.against) family.push_back(&c);
  }
  table.comparisons = correct(family, table.options.statistics.level);
}

}  // namespace

size_t StudyCell::known() const {
  return static_cast<size_t>(std::ranges::count_if(values, [](double value) { return !std::isnan(value); }));
}

size_t StudyCell::never() const { return static_cast<size_t>(std::ranges::count(censored, true)); }

std::string StudyTable::deviation_over() const {
  const StudyRow* most = nullptr;
  for (const StudyRow& row : rows) {
    if (row.trained && (!most || row.runs.size() > most->runs.size())) most = &row;
  }
  if (!most || most->runs.size() < 2) return "";
  std::set<std::string> bases;
  std::set<int64_t> seeds;
  for (const RunLabel& label : most->runs) {
    bases.insert(label.base);
    seeds.insert(label.seed);
  }
  const size_t n = most->runs.size();
  if (bases.size() < 2) return str(n, " ", unit_of(most->runs), bases.begin()->empty() ? "" : " of one base");
  if (seeds.size() < 2) return str(n, " bases, one seed");
  if (bases.size() == n) return str(n, " bases, each with a seed of its own");
  return str(n, " runs: ", bases.size(), " bases and ", seeds.size(), " seeds");
}

std::vector<std::string> expand_column(const std::string& column, const std::vector<std::string>& sources) {
  parse_quantity(column);
  if (!column.ends_with(":*")) return {column};
  std::vector<std::string> out;
  for (const std::string& source : sources) out.push_back(column.substr(0, column.size() - 1) + source);
  return out;
}

double training_value(const StepTable& steps, const Quantity& quantity) {
  const double threshold = std::strtod(quantity.at.c_str(), nullptr);
  const std::vector<double> validated = steps.mean_over(metric::val_accuracy.key);
  if (quantity.name == "steps_to_val") {
    const auto first = std::ranges::find_if(validated, [&](double value) { return value >= threshold; });
    return first == validated.end() ? kUnknown : steps.step[first - validated.begin()];
  }
  const auto* accuracy = steps.find(metric::train_accuracy.key);
  size_t reached = 0;
  while (accuracy && reached < accuracy->size() && !((*accuracy)[reached] >= threshold)) ++reached;
  if (!accuracy || reached == accuracy->size()) return kUnknown;
  if (quantity.name == "steps_to") return steps.step[reached];
  for (size_t i = reached; i < validated.size(); ++i) {
    if (!std::isnan(validated[i])) return validated[i];
  }
  return kUnknown;
}

namespace {

std::string axis_value(const StudyTable& table, size_t row, size_t axis) { return table.settings[row][axis].second; }

// Whether the row has the lowest or the highest of an axis' numbers. An axis of words has no ends.
bool at_edge(const StudyTable& table, const std::vector<size_t>& rows, size_t row, size_t axis) {
  std::vector<double> values;
  double own = kUnknown;
  for (size_t i : rows) {
    const std::string text = axis_value(table, i, axis);
    char* end = nullptr;
    values.push_back(std::strtod(text.c_str(), &end));
    if (text.empty() || *end != '\0') return false;
    if (i == row) own = values.back();
  }
  const auto [low, high] = std::ranges::minmax(values);
  return low < high && (own == low || own == high);
}

// The expected highest of `count` draws of a normal distribution (Blom 1958).
double highest_normal(size_t count) {
  return normal_quantile((static_cast<double>(count) - 0.375) / (static_cast<double>(count) + 0.25));
}

}  // namespace

std::optional<BestCell> best_cell(const StudyTable& table) {
  const auto column = std::ranges::find(table.columns, table.options.metric);
  if (table.options.axes.empty() || column == table.columns.end() || !parse_quantity(*column).is_share()) return {};
  const auto c = static_cast<size_t>(column - table.columns.begin());
  std::vector<size_t> rows;
  std::vector<double> variances;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const StudyCell& cell = table.rows[i].cells[c];
    const auto& settings = table.settings[i];
    const bool of_grid = std::ranges::none_of(settings, [](const auto& s) { return s.second.empty(); });
    if (!table.rows[i].trained || !of_grid || std::isnan(cell.mean)) continue;
    rows.push_back(i);
    if (!std::isnan(cell.deviation)) {
      variances.push_back(cell.deviation * cell.deviation / static_cast<double>(cell.known()));
    }
  }
  if (rows.size() < 2) return {};
  BestCell best{rows.front(), rows.size(), {}, kUnknown};
  for (size_t i : rows) {
    if (table.rows[i].cells[c].mean > table.rows[best.row].cells[c].mean) best.row = i;
  }
  for (size_t a = 0; a < table.options.axes.size(); ++a) {
    if (at_edge(table, rows, best.row, a)) best.at_edge.push_back(table.options.axes[a]);
  }
  if (!variances.empty()) best.by_chance = highest_normal(rows.size()) * std::sqrt(mean_of(variances));
  return best;
}

StudyTable study_table(const std::vector<std::string>& paths, const TableOptions& options) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::vector<RunGroup> groups = group_runs(runs);
  StudyTable table;
  table.options = options;
  std::vector<AnswerGroup> answers;
  for (const RunGroup& group : groups) {
    answers.push_back(answers_of(group, [&](const RunRecord& run) { return evaluation_called(run, options.eval); }));
    if (answers.back().runs.empty()) {
      throw Error(ErrorKind::empty, str(group.runs[0]->path, ": no evaluation eval/", options.eval, ".json"));
    }
  }
  if (answers.empty()) throw Error(ErrorKind::empty, "no runs, no table");
  describe_evaluation(groups, table);
  const RunAnswers& first = answers[0].runs[0];
  const std::vector<std::string> sources = sources_of(first), quoted = quoted_columns(answers);
  table.columns = expand_all(options.columns.empty() ? default_columns(first, quoted) : options.columns, sources);
  table.compare = expand_all(options.compare.empty() ? quoted : options.compare, sources);
  add_training_figures(groups, table, answers);
  add_matched_figures(groups, table, answers);
  if (asks_for_frontier(table)) add_base_counts(answers);
  size_t reference = groups.size();
  for (size_t i = groups.size(); i-- > 0;) {
    if (options.reference.empty() ? groups[i].trained : groups[i].title == options.reference) reference = i;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    table.rows.push_back(study_row(answers[i], table.columns));
    std::vector<std::pair<std::string, std::string>> settings;
    for (const std::string& axis : options.axes) settings.emplace_back(axis, groups[i].runs[0]->setting(axis));
    table.settings.push_back(std::move(settings));
  }
  add_gates(table);
  if (reference == groups.size()) return table;
  table.reference = groups[reference].title;
  compare_rows(table, answers, reference);
  compare_placebos(table, answers);
  const StudyDecision& decision = options.decide;
  if (!decision.row.empty()) table.decision = decide(table, title_of(options, decision.row), decision);
  return table;
}

}  // namespace ucas
