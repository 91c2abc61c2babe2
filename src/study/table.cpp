#include "study/table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "core/metrics.h"
#include "results/compare/answers.h"
#include "results/stats/intervals.h"

namespace ucas {

namespace {

std::vector<Quantity> each_source(const std::vector<Quantity>& columns, const std::vector<std::string>& sources) {
  std::vector<Quantity> out;
  for (const Quantity& column : columns) {
    for (const std::string& source : column.scope == "each" ? sources : std::vector<std::string>{column.scope}) {
      out.push_back(column);
      out.back().scope = source;
    }
  }
  return out;
}

const EvalRecord* evaluation_called(const RunRecord& run, const std::string& name) {
  const auto found = std::ranges::find(run.evaluations, name, &EvalRecord::name);
  return found == run.evaluations.end() ? nullptr : &*found;
}

// Of the trained rows where there are any: the base may have been asked more often.
std::vector<Quantity> quoted_columns(const std::vector<AnswerGroup>& rows) {
  const bool trained = std::ranges::any_of(rows, &AnswerGroup::trained);
  std::vector<const RunAnswers*> runs;
  for (const AnswerGroup& row : rows) {
    for (const RunAnswers& run : row.runs) {
      if (row.trained || !trained) runs.push_back(&run);
    }
  }
  return quoted_quantities(runs);
}

StudyRow study_row(const RunGroup& runs, const AnswerGroup& group, const std::vector<Quantity>& columns) {
  StudyRow row{runs.runs[0]->row, group.title, group.trained, {}, {}, {}};
  for (const RunAnswers& run : group.runs) row.runs.push_back(run.label);
  for (const Quantity& column : columns) {
    StudyCell cell;
    std::vector<double> known;
    for (const RunAnswers& run : group.runs) {
      cell.values.push_back(value_of(run, column));
      cell.censored.push_back(run.censored.contains(column.text()));
      if (!std::isnan(cell.values.back())) known.push_back(cell.values.back());
    }
    cell.mean = mean_of(known);
    cell.deviation = deviation_of(known);
    row.cells.push_back(std::move(cell));
  }
  return row;
}

// The step after the last one that a run was to take, whatever ended it before.
double after_all_steps(const RunRecord& run) {
  const double last = run.steps.step.empty() ? 0 : run.steps.step.back();
  return std::max(last, std::strtod(run.setting("train.steps").c_str(), nullptr)) + 1;
}

std::vector<Quantity> all_columns(const StudyTable& table) {
  std::vector<Quantity> columns = table.columns;
  columns.insert(columns.end(), table.compare.begin(), table.compare.end());
  return columns;
}

// What the columns ask of the trainings themselves. A run that never reached an accuracy counts with the first step at
// which it still might have.
void add_training_figures(const std::vector<RunGroup>& groups, const StudyTable& table,
                          std::vector<AnswerGroup>& answers) {
  for (const Quantity& quantity : all_columns(table)) {
    if (!quantity.of_training()) continue;
    Quantity least = quantity;  // at an accuracy that every training with such figures reaches
    least.at = "0";
    for (size_t g = 0; g < groups.size(); ++g) {
      for (RunAnswers& run : answers[g].runs) {
        const auto record = std::ranges::find(groups[g].runs, run.name, [](const RunRecord* r) { return r->path; });
        const double value = training_value((*record)->steps, quantity);
        if (!std::isnan(value)) {
          run.figures[quantity.text()] = value;
        } else if (quantity.name != "val_at" && !std::isnan(training_value((*record)->steps, least))) {
          run.figures[quantity.text()] = after_all_steps(**record);
          run.censored.insert(quantity.text());
        }
      }
    }
  }
}

void add_gates(StudyTable& table) {
  table.gates = check_gates(table.options.gates, [&](const std::string& row, const Quantity& quantity) {
    const size_t found = table.row_called(row);
    const auto column = std::ranges::find(table.columns, quantity);
    if (found == table.rows.size() || column == table.columns.end()) return kUnknown;
    return table.rows[found].cells[static_cast<size_t>(column - table.columns.begin())].mean;
  });
}

// The seeds that all rows of the decision have, as many as the last look that is reached; its level is the table's.
void take_look(std::vector<RunGroup>& groups, StudyTable& table) {
  const StudyDecision& decision = table.options.decide;
  std::vector<std::string> rows = decision.placebos;
  rows.push_back(decision.row);
  rows.push_back(table.options.reference);
  std::map<int64_t, std::set<std::string>> rows_of;
  for (const RunGroup& group : groups) {
    const auto& name = group.runs[0]->row;
    if (std::ranges::find(rows, name.empty() ? group.title : name) == rows.end()) continue;
    for (const RunRecord* run : group.runs) rows_of[run->seed].insert(group.title);
  }
  std::vector<int64_t> complete;
  for (const auto& [seed, of] : rows_of) {
    if (of.size() == rows.size()) complete.push_back(seed);
  }
  table.complete_seeds = std::ssize(complete);
  for (size_t i = 0; i < decision.looks.size(); ++i) {
    if (decision.looks[i] > table.complete_seeds) break;
    table.look = decision.looks[i];
    table.options.statistics.level = 1 - obrien_fleming(decision.looks)[i];
  }
  if (table.look == 0) return;
  complete.resize(static_cast<size_t>(table.look));
  for (RunGroup& group : groups) {
    std::erase_if(group.runs, [&](const RunRecord* run) {
      return group.trained && std::ranges::find(complete, run->seed) == complete.end();
    });
  }
  std::erase_if(groups, [](const RunGroup& group) { return group.runs.empty(); });
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

// What the base of each run solved how often, for `frontier`.
void add_base_counts(std::vector<AnswerGroup>& answers) {
  std::map<std::string, std::map<ProblemKey, const ProblemAnswers*>> bases;
  for (const AnswerGroup& group : answers) {
    if (group.trained) continue;
    // The first: the same base may follow with another prompt.
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

// The row of the decision against each placebo, and every other row against the reference; p are corrected together
// within each family.
void compare_rows(StudyTable& table, const std::vector<AnswerGroup>& answers, size_t reference) {
  const StudyDecision& decision = table.options.decide;
  const size_t decided = decision.row.empty() ? table.rows.size() : table.row_called(decision.row);
  std::set<size_t> placebos;
  for (const std::string& row : decision.placebos) placebos.insert(table.row_called(row));
  const auto against = [&](size_t from, size_t to) {
    std::vector<Contrast> all;
    for (const Quantity& column : table.compare) {
      all.push_back(contrast(answers[from], answers[to], column, table.options.statistics));
      if (!table.tested()) all.back() = {.change = {all.back().change.value, kUnknown, kUnknown}};
    }
    return all;
  };
  std::vector<Contrast*> of_decision, of_trained, of_untrained, of_placebos;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    StudyRow& row = table.rows[i];
    if (i == reference || placebos.contains(i)) continue;
    row.against = against(reference, i);
    auto& family = !row.trained ? of_untrained : i == decided ? of_decision : of_trained;
    for (Contrast& c : row.against) family.push_back(&c);
  }
  for (size_t i : placebos) {
    if (std::max(i, decided) < table.rows.size()) table.placebos.push_back({table.rows[i].title, against(i, decided)});
  }
  for (PlaceboContrasts& placebo : table.placebos) {
    for (Contrast& c : placebo.below) of_placebos.push_back(&c);
  }
  const double level = table.options.statistics.level;
  table.decided = correct(of_decision, level);
  table.trained = correct(of_trained, level);
  table.untrained = correct(of_untrained, level);
  correct(of_placebos, level);
}

}  // namespace

size_t StudyCell::known() const {
  return static_cast<size_t>(std::ranges::count_if(values, [](double value) { return !std::isnan(value); }));
}

size_t StudyCell::never() const { return static_cast<size_t>(std::ranges::count(censored, true)); }

size_t StudyTable::row_called(const std::string& name) const {
  const auto found =
      std::ranges::find_if(rows, [&](const StudyRow& row) { return row.name == name || row.title == name; });
  return static_cast<size_t>(found - rows.begin());
}

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

TableOptions table_options(const Study& study, const Words& words) {
  const StudyConfig& c = study.config;
  // What makes the table again: without what only says where.
  static const std::set<std::string> kElsewhere = {"--out", "--pool", "--threads", "--from"};
  std::string command = "ucas study";
  for (size_t i = 0; i < words.size(); ++i) {
    if (kElsewhere.contains(words[i])) {
      ++i;
    } else if (!kElsewhere.contains(words[i].substr(0, words[i].find('=')))) {
      command += " " + words[i];
    }
  }
  return {.title = c.title,
          .command = command,
          .eval = c.eval_name(),
          .reference = c.reference,
          .columns = study.columns,
          .compare = study.compare,
          .each_seed = c.is("seeds"),
          .statistics = {},
          .gates = study.gates,
          .decide = c.decide};
}

std::vector<std::string> runs_below(const std::string& home, const Study& study) {
  std::vector<std::string> rows = {"base"}, runs;
  for (const StudyRun& run : study.runs) rows.push_back(run.name);
  for (const std::string& row : rows) {
    for (const std::string& name : list_directory(home)) {
      const bool base = row == "base" && name.starts_with("base");
      if (base || name.starts_with(row + "-seed") || name.starts_with(row + "-base"))
        runs.push_back(path_join(home, name));
    }
  }
  return runs;
}

StudyTable study_table(const std::vector<std::string>& paths, const TableOptions& options) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::vector<RunGroup> groups = group_runs(runs);
  StudyTable table;
  table.options = options;
  if (!options.decide.looks.empty()) take_look(groups, table);
  std::vector<AnswerGroup> answers;
  for (const RunGroup& group : groups) {
    answers.push_back(answers_of(group, [&](const RunRecord& run) { return evaluation_called(run, options.eval); }));
    if (answers.back().runs.empty()) {
      throw Error(ErrorKind::empty, str(group.runs[0]->path, ": no evaluation eval/", options.eval, ".json"));
    }
  }
  if (answers.empty()) throw Error(ErrorKind::empty, "no runs, no table");
  describe_evaluation(groups, table);
  const std::vector<std::string> sources = sources_of(answers[0].runs[0]);
  const std::vector<Quantity> quoted = quoted_columns(answers);
  table.columns = each_source(options.columns.empty() ? quoted : options.columns, sources);
  for (const char* metric : {"entropy", "length"}) {
    if (options.columns.empty()) table.columns.push_back(parse_quantity(metric));
  }
  table.compare = each_source(options.compare.empty() ? quoted : options.compare, sources);
  add_training_figures(groups, table, answers);
  const std::vector<Quantity> all = all_columns(table);
  if (std::ranges::find(all, "frontier", &Quantity::name) != all.end()) add_base_counts(answers);
  for (size_t i = 0; i < groups.size(); ++i) table.rows.push_back(study_row(groups[i], answers[i], table.columns));
  add_gates(table);
  const auto trained = std::ranges::find(table.rows, true, &StudyRow::trained);
  const size_t reference = options.reference.empty() ? static_cast<size_t>(trained - table.rows.begin())
                                                     : table.row_called(options.reference);
  if (reference == table.rows.size()) return table;
  table.reference = table.rows[reference].title;
  compare_rows(table, answers, reference);
  if (!options.decide.row.empty()) table.decision = decide(table);
  return table;
}

}  // namespace ucas
